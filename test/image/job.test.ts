import { randomFillSync } from 'node:crypto';
import test from 'ava';
import sharp from 'sharp';
import { ImageError } from '../../src/image/errors.ts';
import { overdueAfter, runJob } from '../../src/image/job.ts';

const noise = (side: number) =>
  sharp(randomFillSync(new Uint8Array(side * side * 3)), { raw: { width: side, height: side, channels: 3 } });

const size = { width: 10, height: 10 };

test('work that exceeds its timeout ends with `timeout`', async (t) => {
  const slow = noise(3000).median(41).raw();
  const error = await t.throwsAsync(runJob(slow, size, { timeoutSeconds: 1 }), { instanceOf: ImageError });
  t.like(error, { code: 'timeout' });
});

test('failures within the time limit are thrown unchanged', async (t) => {
  const wrong = noise(10).extract({ left: 0, top: 0, width: 50, height: 50 }).raw();
  await t.throwsAsync(runJob(wrong, size, { timeoutSeconds: 60 }), { message: /extract_area/ });
});

test('an abort during the work takes precedence over the result', async (t) => {
  const controller = new AbortController();
  const work = runJob(noise(500).raw(), size, { signal: controller.signal });
  controller.abort(new Error('client gone'));
  await t.throwsAsync(work, { message: 'client gone' });
});

test.serial('after an abort nothing is started', async (t) => {
  const before = sharp.counters();
  const signal = AbortSignal.abort(new Error('client gone'));
  await t.throwsAsync(runJob(noise(10).raw(), size, { signal }), { message: 'client gone' });
  t.deepEqual(sharp.counters(), before);
});

test('who watches is told what the size of a job may take, when it begins, and when it has ended', async (t) => {
  const told: (number | string)[] = [];
  const watch = (ms: number) => {
    told.push(ms);
    return () => void told.push('ended');
  };
  await runJob(noise(10).raw(), size, { watch });
  await t.throwsAsync(
    runJob(noise(10).extract({ left: 0, top: 0, width: 50, height: 50 }).raw(), size, { watch }),
  );
  await t.throwsAsync(runJob(noise(10).raw(), size, { watch, signal: AbortSignal.abort(new Error('gone')) }));
  t.deepEqual(told, [overdueAfter(size), 'ended', overdueAfter(size), 'ended']);
  const large = { width: 5000, height: 4000 };
  t.true(overdueAfter(large) > overdueAfter(size));
  t.true(overdueAfter({ ...large, slow: true }) > overdueAfter(large));
});
