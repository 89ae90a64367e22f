import { randomFillSync } from 'node:crypto';
import test from 'ava';
import sharp from 'sharp';
import { ImageError } from '../../src/image/errors.ts';
import { runJob } from '../../src/image/job.ts';

const noise = (side: number) =>
  sharp(randomFillSync(new Uint8Array(side * side * 3)), { raw: { width: side, height: side, channels: 3 } });

test('work that exceeds its timeout ends with `timeout`', async (t) => {
  const slow = noise(3000).median(41).raw();
  const error = await t.throwsAsync(runJob(slow, { timeoutSeconds: 1 }), { instanceOf: ImageError });
  t.like(error, { code: 'timeout' });
});

test('failures within the time limit are thrown unchanged', async (t) => {
  const wrong = noise(10).extract({ left: 0, top: 0, width: 50, height: 50 }).raw();
  await t.throwsAsync(runJob(wrong, { timeoutSeconds: 60 }), { message: /extract_area/ });
});

test('an abort during the work takes precedence over the result', async (t) => {
  const controller = new AbortController();
  const work = runJob(noise(500).raw(), { signal: controller.signal });
  controller.abort(new Error('client gone'));
  await t.throwsAsync(work, { message: 'client gone' });
});

test.serial('after an abort nothing is started', async (t) => {
  const before = sharp.counters();
  const signal = AbortSignal.abort(new Error('client gone'));
  await t.throwsAsync(runJob(noise(10).raw(), { signal }), { message: 'client gone' });
  t.deepEqual(sharp.counters(), before);
});
