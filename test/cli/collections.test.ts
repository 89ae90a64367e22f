import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { modelsFolder, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { form } from '../fixtures/service.ts';
import { samplesOf } from '../support/prometheus.ts';

/** A PNG of 200 kB: noise cannot be compressed. */
const image = () =>
  sharp({
    create: {
      width: 256,
      height: 256,
      channels: 3,
      background: 'white',
      noise: { type: 'gaussian', mean: 128, sigma: 80 },
    },
  })
    .png()
    .toBuffer();

const key = 'key-of-this-test-0123';

/** A server with a network of a few operations. */
async function serve(t: ExecutionContext) {
  const server = await startServing(t, {
    CUTOUT_DATA_DIR: temporaryFolder(t),
    CUTOUT_MODELS_DIR: modelsFolder(temporaryFolder(t)),
    CUTOUT_SUBJECT_TYPES: 'off',
    CUTOUT_RATE_LIMIT: '0',
    CUTOUT_API_KEY: key,
    CUTOUT_METRICS_PORT: '0',
  });
  const metricsUrl = /^Metrics\s+(http:\S+)$/m.exec(server.stderr())?.[1] ?? '';
  return {
    collections: async () =>
      samplesOf(await (await fetch(metricsUrl)).text()).get(
        'nodejs_gc_duration_seconds_count{kind="major"}',
      ) ?? 0,
    post: async (upload: Buffer, size: string) => {
      const answer = await fetch(`${server.url}/v1.0/removebg`, {
        method: 'POST',
        headers: { 'X-Api-Key': key },
        body: form({ image_file: upload, size }),
      });
      await answer.arrayBuffer();
      t.is(answer.status, 200);
    },
  };
}

const repeats = 600;
const atOnce = 8;

test('repeated uploads cause few full garbage collections', async (t) => {
  t.timeout(300_000);
  const { collections, post } = await serve(t);
  const upload = await image();
  t.true(upload.length > 150e3, `${upload.length} bytes`);
  const postSeveral = async (count: number) => {
    for (let i = 0; i < count; i += 1) await post(upload, 'preview');
  };
  const postAll = (count: number) =>
    Promise.all(Array.from({ length: atOnce }, () => postSeveral(count / atOnce)));
  await post(upload, 'preview');
  // Collections of the start and of the code's compilation are not counted.
  await postAll(200);
  const before = await collections();
  await postAll(repeats);
  const full = (await collections()) - before;
  t.log(`${full} full collections in ${repeats} repeats`);
  t.true(full <= 1, `${full}`);
});

const images = 20;

test('pixels of large images cause few full garbage collections', async (t) => {
  t.timeout(300_000);
  const { collections, post } = await serve(t);
  const size = { width: 3000, height: 2000 };
  const drawn = await sharp({ create: { ...size, channels: 3, background: '#fff' } })
    .composite([{ input: { create: { width: 900, height: 900, channels: 3, background: '#124' } } }])
    .jpeg()
    .toBuffer();
  const different = (i: number) => Buffer.concat([drawn, Buffer.from([i])]);
  for (let i = 0; i < 5; i += 1) await post(different(i), 'full');
  const before = await collections();
  for (let i = 5; i < 5 + images; i += 1) await post(different(i), 'full');
  const full = (await collections()) - before;
  t.log(`${full} full collections for ${images} images of 24 MB of pixels`);
  t.true(full <= 2, `${full}`);
});
