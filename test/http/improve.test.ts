import test from 'ava';
import { UserError } from '../../src/errors.ts';
import { scene } from '../fixtures/images.ts';
import { errorOf, form, type Service, startService } from '../fixtures/service.ts';

const handIn = (service: Service, body: FormData | string, headers: Record<string, string> = {}) =>
  fetch(`${service.url}/v1.0/improve`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key, ...headers },
    body,
  });

test('an image is stored with label and tag; the answer is its id only', async (t) => {
  const service = await startService(t, { credits: 0, freePreviews: 0 });
  const photo = await scene({ width: 90, height: 60 });
  const data = form({ tag: 'hair', image_filename: '../../etc/cat.jpg' });
  data.append('image_file', new Blob([new Uint8Array(photo)]), 'other.jpg');
  const answer = await handIn(service, data);
  t.is(answer.status, 200);
  t.is(answer.headers.get('content-type'), 'application/json; charset=utf-8');
  t.false([...answer.headers.keys()].some((name) => name.startsWith('x-ratelimit')));
  const body = (await answer.json()) as { id: string };
  t.deepEqual(Object.keys(body), ['id']);
  t.regex(body.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const [image] = await service.improve.list();
  if (!image) throw new Error('nothing kept');
  t.like(image, {
    id: body.id,
    accountId: service.accountId,
    type: 'jpg',
    width: 90,
    height: 60,
    filename: 'cat.jpg',
    tag: 'hair',
  });
  t.deepEqual(await service.improve.bytes(image), photo);
});

test('the label defaults to the name of the upload or the end of its address', async (t) => {
  const service = await startService(t);
  const photo = await scene();
  const upload = new FormData();
  upload.append('image_file', new Blob([new Uint8Array(photo)]), 'holiday/dog.png');
  t.is((await handIn(service, upload)).status, 200);
  const json = JSON.stringify({ image_file_b64: photo.toString('base64'), image_filename: '' });
  t.is((await handIn(service, json, { 'Content-Type': 'application/json' })).status, 200);
  const labels = (await service.improve.list()).map(({ filename }) => filename);
  t.deepEqual(labels.sort(), ['dog.png', null].sort());
});

const failures: readonly [string, () => Promise<Record<string, string | Buffer>>][] = [
  ['missing_source', async () => ({ tag: 'x' })],
  ['multiple_sources', async () => ({ image_url: 'http://a.public.test/', image_file: await scene() })],
  ['invalid_image_url', async () => ({ image_url: 'nowhere' })],
  ['failed_image_download', async () => ({ image_url: 'http://10.0.0.1/a.jpg' })],
  ['invalid_file_type', async () => ({ image_file: Buffer.from('GIF89a......') })],
  ['failed_to_read_image', async () => ({ image_file_b64: '***' })],
];

for (const [code, fields] of failures) {
  test(`${code}: as for cutout, and nothing is stored`, async (t) => {
    const service = await startService(t);
    const answer = await handIn(service, form(await fields()));
    t.is(answer.status, 400);
    t.is((await errorOf(t, answer)).code, code);
    t.deepEqual(await service.improve.list(), []);
  });
}

test('the daily quota, then 429 with the time to wait', async (t) => {
  const service = await startService(t, { improvePerDay: 2 });
  const call = async () => handIn(service, form({ image_file: await scene() }));
  t.is((await call()).status, 200);
  t.is((await call()).status, 200);
  const refused = await call();
  t.is(refused.status, 429);
  const wait = Number(refused.headers.get('retry-after'));
  t.true(wait >= 1 && wait <= 86_400);
  t.is((await errorOf(t, refused)).code, 'rate_limit_exceeded');
  t.is((await handIn(service, form({ image_file: Buffer.from('text') }))).status, 429, 'it is not looked at');
  t.is((await service.balance()).credits, 100);
  // It is independent of the other limits.
  t.is((await service.post(form({ image_file: await scene() }))).headers.get('x-ratelimit-remaining'), '499');
});

test('it needs a key and answers a preflight without one', async (t) => {
  const service = await startService(t);
  t.is((await handIn(service, form({ image_file: await scene() }), { 'X-Api-Key': 'x' })).status, 403);
  t.is((await fetch(`${service.url}/v1.0/improve`, { method: 'OPTIONS' })).status, 204);
  t.is((await fetch(`${service.url}/v1.0/improve`)).headers.get('allow'), 'OPTIONS, POST');
});

test('without room for the image the answer is 503, and says when to try again', async (t) => {
  const service = await startService(t);
  for (const code of ['ENOSPC', 'EDQUOT', 'EFBIG', 'EROFS']) {
    const fault = Object.assign(new Error(code), { code });
    // Of the image, or of the folder for it.
    for (const error of [fault, new UserError('The folder cannot be created.', { cause: fault })]) {
      service.improve.handIn = async () => {
        throw error;
      };
      const answer = await handIn(service, form({ image_file: await scene() }));
      t.is(answer.status, 503, code);
      t.true(Number(answer.headers.get('retry-after')) > 0);
      t.is((await errorOf(t, answer)).code, 'service_unavailable');
    }
  }
});
