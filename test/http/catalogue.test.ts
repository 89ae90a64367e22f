import test from 'ava';
import { catalogue, type ErrorId } from '../../src/errors.ts';
import { scene } from '../fixtures/images.ts';
import { dial } from '../fixtures/rawHttp.ts';
import { errorOf, eventually, form, type Service, startService } from '../fixtures/service.ts';

/** Errors of the console only, which console.test.ts provokes. */
type ConsoleErrorId = 'not_signed_in' | 'operators_only' | 'forged_request';
type Provoke = (service: Service) => Promise<Response>;

const withField = (name: string, value: string) => async (service: Service) =>
  service.post(form({ image_file: await scene(), [name]: value }));
const withImage = (make: () => Promise<Buffer>) => async (service: Service) =>
  service.post(form({ image_file: await make() }));

/** A PNG header that states a size, without data. */
async function lying(width: number, height: number): Promise<Buffer> {
  const png = await scene({ format: 'png' });
  png.writeUInt32BE(width, 16);
  png.writeUInt32BE(height, 20);
  return png;
}

/** A way to cause each error over HTTP; the missing one reaches no client. */
const provocations: Record<Exclude<ErrorId, 'client_closed' | ConsoleErrorId>, Provoke> = {
  missing_source: (service) => service.post(form({})),
  multiple_sources: (service) =>
    service.post(form({ image_url: 'http://a.public.test/', image_file_b64: 'AAAA' })),
  multiple_bg_sources: async (service) =>
    service.post(form({ image_file: await scene(), bg_color: 'red', bg_image_url: 'http://a.public.test/' })),
  multiple_masks: async (service) =>
    service.post(form({ image_file: await scene(), mask_file: await scene(), mask_file_b64: 'AAAA' })),
  invalid_image_url: (service) => service.post(form({ image_url: 'nowhere' })),
  failed_image_download: (service) => service.post(form({ image_url: 'http://10.0.0.1/a.jpg' })),
  invalid_bg_image_url: withField('bg_image_url', 'nowhere'),
  failed_bg_download: withField('bg_image_url', 'http://10.0.0.1/a.jpg'),
  failed_to_read_image: withImage(async () => {
    const image = await scene();
    return image.subarray(0, image.length - 200);
  }),
  invalid_dimensions: withImage(() => lying(0, 10)),
  invalid_file_type: withImage(async () => Buffer.from('GIF89a......')),
  file_too_large: withImage(async () => Buffer.alloc(22 * 1024 * 1024 + 1)),
  resolution_too_high: withImage(() => lying(10_000, 5001)),
  unknown_foreground: withImage(() => scene({ subject: 'none' })),
  invalid_size: withField('size', 'huge'),
  invalid_type: withField('type', 'house'),
  invalid_type_level: withField('type_level', '3'),
  invalid_format: withField('format', 'gif'),
  invalid_channels: withField('channels', 'rgb'),
  invalid_roi: withField('roi', '1 2 3 4'),
  roi_exceeds_bounds: withField('roi', '0 0 1000px 1000px'),
  roi_region_empty: withField('roi', '0 0 0 0'),
  invalid_crop: withField('crop', 'yes'),
  invalid_crop_margin: withField('crop_margin', '10'),
  invalid_scale: withField('scale', '9%'),
  invalid_position: withField('position', 'left'),
  invalid_lossless: withField('lossless', 'yes'),
  invalid_add_shadow: withField('add_shadow', 'yes'),
  invalid_shadow_type: withField('shadow_type', 'soft'),
  invalid_shadow_opacity: withField('shadow_opacity', '101'),
  invalid_semitransparency: withField('semitransparency', 'yes'),
  invalid_bg_color: withField('bg_color', '#12'),
  invalid_mask_file: async (service) =>
    service.post(form({ image_file: await scene(), mask_file: Buffer.from('no image') })),
  mask_shape_mismatch: async (service) =>
    service.post(
      form({
        image_file: await scene({ width: 90, height: 60 }),
        mask_file: await scene({ width: 60, height: 60 }),
      }),
    ),
  multiple_subject_sources: async (service) =>
    service.post(form({ image_file: await scene(), mask_file: await scene(), subject_points: '1% 1%' })),
  invalid_subject_points: withField('subject_points', 'there'),
  invalid_subject_box: withField('subject_box', '1 2 3 4'),
  subject_selection_unavailable: withField('subject_points', '1% 1%'),
  malformed_request: (service) => service.post('{', { 'Content-Type': 'application/json' }),
  insufficient_credits: withField('size', 'full'),
  auth_missing: (service) => fetch(`${service.url}/v1.0/cutout`, { method: 'POST' }),
  auth_invalid: (service) => service.post(form({}), { 'X-Api-Key': 'x' }),
  not_found: (service) => fetch(`${service.url}/nothing`),
  method_not_allowed: (service) => fetch(`${service.url}/v1.0/cutout`, { method: 'PUT' }),
  unsupported_content_type: (service) => service.post('x', { 'Content-Type': 'text/plain' }),
  rate_limit_exceeded: async (service) => {
    await service.post(form({ image_file: await scene() }));
    return service.post(form({ image_file: await scene({ width: 1500, height: 1000 }) }));
  },
  internal_error: async (service) => {
    service.engine.failure = new Error('bug');
    return service.post(form({ image_file: await scene() }));
  },
  service_unavailable: async (service) => {
    service.health.stopping();
    return service.post(form({ image_file: await scene() }));
  },
  timeout: async (service) => {
    service.engine.hold = new Promise(() => {});
    return service.post(form({ image_file: await scene() }));
  },
};

for (const [id, provoke] of Object.entries(provocations)) {
  test(`${id} is answered as its row says`, async (t) => {
    const row = catalogue[id as ErrorId];
    const service = await startService(t, { credits: 0, rate: 2, timeout: id === 'timeout' ? 3 : 30 });
    const answer = await provoke(service);
    t.is(answer.status, row.status);
    const error = await errorOf(t, answer);
    t.is(error.code, row.code);
    t.is(error.title.replace('http://10.0.0.1/a.jpg', '{url}'), row.title);
    t.is(answer.headers.has('retry-after'), row.status === 429 || row.status === 503);
    await eventually(() => service.lines().some(({ path }) => typeof path === 'string'));
    const reported = service.lines().filter(({ level }) => level === 50).length;
    t.is(reported, row.reported ? 1 : 0);

    // The next request succeeds.
    service.engine.failure = undefined;
    service.engine.hold = undefined;
    if (id === 'service_unavailable') return;
    t.is((await service.post(form({ image_file: await scene() }))).status, 200);
  });
}

test('client_closed is in the log only', async (t) => {
  const service = await startService(t);
  const socket = await dial(service.address.port);
  socket.write(
    `POST /v1.0/cutout HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${service.key}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{`,
  );
  await eventually(() => service.memory.stats.held > 0);
  socket.destroy();
  await eventually(() => service.lines().length === 1);
  t.like(service.lines()[0], { status: catalogue.client_closed.status, error: catalogue.client_closed.code });
});

test('an invalid option states what is allowed and what was received, truncated and escaped', async (t) => {
  const service = await startService(t);
  const long = `\u0007<b>${'x'.repeat(300)}`;
  const { detail } = await errorOf(t, await service.post(form({ image_file: await scene(), format: long })));
  t.is(detail, `Expected auto, png, jpg, webp, avif, zip or jpeg, received "\ufffd<b>${'x'.repeat(96)}…".`);
});

test('megapixels of a refused image are rounded up', async (t) => {
  const service = await startService(t);
  const { detail } = await errorOf(t, await service.post(form({ image_file: await lying(10_000, 5001) })));
  t.is(detail, 'Input image has 51 megapixels, maximum supported input resolution is 50 megapixels');
});
