import test from 'ava';
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

const repeats = 600;
const atOnce = 8;

test('repeated uploads cause few full garbage collections', async (t) => {
  t.timeout(300_000);
  const key = 'key-of-this-test-0123';
  const server = await startServing(t, {
    CUTOUT_DATA_DIR: temporaryFolder(t),
    CUTOUT_MODELS_DIR: modelsFolder(temporaryFolder(t)),
    CUTOUT_SUBJECT_TYPES: 'off',
    CUTOUT_RATE_LIMIT: '0',
    CUTOUT_API_KEY: key,
    CUTOUT_METRICS_PORT: '0',
  });
  const metricsUrl = /^Metrics\s+(http:\S+)$/m.exec(server.stderr())?.[1] ?? '';
  const collections = async () =>
    samplesOf(await (await fetch(metricsUrl)).text()).get('nodejs_gc_duration_seconds_count{kind="major"}') ??
    0;
  const upload = await image();
  t.true(upload.length > 150e3, `${upload.length} bytes`);
  const post = async (count: number) => {
    for (let i = 0; i < count; i += 1) {
      const body = form({ image_file: upload, size: 'preview' });
      const answer = await fetch(`${server.url}/v1.0/removebg`, {
        method: 'POST',
        headers: { 'X-Api-Key': key },
        body,
      });
      await answer.arrayBuffer();
      t.is(answer.status, 200);
    }
  };
  const postAll = (count: number) => Promise.all(Array.from({ length: atOnce }, () => post(count / atOnce)));
  await post(1);
  // Collections of the start and of the code's compilation are not counted.
  await postAll(200);
  const before = await collections();
  await postAll(repeats);
  const full = (await collections()) - before;
  t.log(`${full} full collections in ${repeats} repeats`);
  t.true(full <= 1, `${full}`);
});
