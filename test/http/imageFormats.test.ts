import test from 'ava';
import sharp from 'sharp';
import { heic } from '../fixtures/heic.ts';
import { scene } from '../fixtures/images.ts';
import { type Service, startService } from '../fixtures/service.ts';

/** Every service of this file accepts the same formats, because libvips' settings are those of the process. */
const start = (t: Parameters<typeof startService>[0]): Promise<Service> =>
  startService(t, { inputFormats: ['avif', 'heic', 'tiff', 'gif'], credits: 10 });

function form(fields: Readonly<Record<string, string | Buffer>>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields))
    if (typeof value === 'string') data.append(name, value);
    else data.append(name, new Blob([Uint8Array.from(value)]), 'image');
  return data;
}

const balance = async (service: Service): Promise<number> => {
  const answer = await fetch(`${service.url}/v1.0/account`, { headers: { 'X-Api-Key': service.key } });
  const { data } = (await answer.json()) as { data: { attributes: { credits: { total: number } } } };
  return data.attributes.credits.total;
};

test('a HEIC is answered like any other image: its size is the upright one', async (t) => {
  const service = await start(t);
  for (const [name, size] of [
    ['turned', '96x64'],
    ['tiled', '300x200'],
    ['alpha', '96x64'],
  ] as const) {
    const answer = await service.post(form({ image_file: heic(name), size: 'full', format: 'png' }));
    t.is(answer.status, 200, name);
    t.is(`${answer.headers.get('x-width')}x${answer.headers.get('x-height')}`, size);
    const { width, height, channels } = await sharp(Buffer.from(await answer.arrayBuffer())).metadata();
    t.deepEqual([`${width}x${height}`, channels], [size, 4]);
  }
});

test('names and declared types of files do not count: a HEIC named .jpg, a JPEG named .HEIC, an AVIF named .webp', async (t) => {
  const service = await start(t);
  const jpeg = await scene({ width: 96, height: 64 });
  const avif = await sharp(jpeg).avif().toBuffer();
  for (const [bytes, name, type] of [
    [heic('plain'), 'photo.jpg', 'image/jpeg'],
    [jpeg, 'IMG_1.HEIC', 'image/heic'],
    [avif, 'photo.webp', 'image/webp'],
  ] as const) {
    const data = new FormData();
    data.append('image_file', new Blob([Uint8Array.from(bytes)], { type }), name);
    data.append('size', 'full');
    const answer = await service.post(data);
    t.is(answer.status, 200, name);
    t.is(answer.headers.get('x-width'), '96', name);
  }
});

test('a damaged HEIC is 400, costs nothing, and the next request works', async (t) => {
  const service = await start(t);
  const damaged = heic('plain');
  damaged.fill(0x55, damaged.indexOf('mdat') + 8);
  const before = await balance(service);
  const refused = await service.post(form({ image_file: damaged, size: 'full' }));
  t.is(refused.status, 400);
  const { errors } = (await refused.json()) as { errors: readonly { readonly code: string }[] };
  t.is(errors[0]?.code, 'failed_to_read_image');
  t.is(await balance(service), before);
  t.is((await service.post(form({ image_file: heic('plain'), size: 'full' }))).status, 200);
  t.is(await service.stores.ledger.openReservations(), 0);
});

for (const channels of ['rgba', 'alpha'])
  test(`format=avif channels=${channels} has the alpha of the PNG`, async (t) => {
    const service = await start(t);
    const photo = await scene({ width: 300, height: 200 });
    const alphaOf = async (format: string, type: string) => {
      const answer = await service.post(form({ image_file: photo, size: 'full', format, channels }));
      t.is(answer.headers.get('content-type'), type);
      const image = sharp(Buffer.from(await answer.arrayBuffer()));
      return image
        .extractChannel(channels === 'alpha' ? 0 : 3)
        .raw()
        .toBuffer();
    };
    const png = await alphaOf('png', 'image/png');
    t.deepEqual(await alphaOf('avif', 'image/avif'), png);
    t.is(new Set(png).size > 1, true);
  });

test('lossless=true with format=webp is the PNG, pixel by pixel, and another request than without', async (t) => {
  const service = await start(t);
  const photo = await scene({ width: 300, height: 200 });
  const post = async (fields: Readonly<Record<string, string>>) => {
    const answer = await service.post(form({ image_file: photo, size: 'full', ...fields }));
    t.is(answer.headers.get('idempotent-replayed'), null);
    return sharp(Buffer.from(await answer.arrayBuffer()))
      .raw()
      .toBuffer();
  };
  const png = await post({ format: 'png' });
  t.deepEqual(await post({ format: 'webp', lossless: 'true' }), png);
  t.notDeepEqual(await post({ format: 'webp' }), png);
});
