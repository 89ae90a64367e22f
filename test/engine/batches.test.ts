import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { EngineOptions, NetworkSpec, Pixels } from '../../src/engine/types.ts';
import { engineOptions, Networks, planFor } from '../fixtures/engineSetup.ts';

/** Batches on the CPU, which the product uses on a GPU only: the same code but for the provider. */
const WORKERS = 8;
const networks = new Networks();
test.after.always(() => networks.remove());

async function open(
  t: ExecutionContext,
  spec: NetworkSpec,
  changes: Partial<EngineOptions>,
): Promise<Engine> {
  const engine = createEngine(loadAddon(), engineOptions({ workers: WORKERS, ...changes }));
  t.teardown(() => engine.close(0));
  await engine.load(spec);
  return engine;
}

/** An image of its own for each seed. */
function image(seed: number): Pixels {
  const data = Uint8Array.from({ length: 64 * 64 * 4 }, (_, at) =>
    at % 4 === 3 ? 255 : 127 + 120 * Math.sin(seed * 12.9898 + at * 0.017),
  );
  return { data, width: 64, height: 64 };
}

const imagesOf = (counts: readonly number[]) =>
  counts.reduce((sum, count, images) => sum + count * images, 0);

test('images in batches get the bytes that they get alone', async (t) => {
  // So small that a run costs more than its images.
  const spec = networks.spec('batched', { width: 16, height: 16, batch: true });
  const alone = await open(t, spec, {});
  const batched = await open(t, spec, { maxBatch: 4, batchDelayMs: 5 });
  for (let round = 0; round < 6; round++) {
    const results = await Promise.all(
      [alone, batched].map((engine) =>
        Promise.all(
          Array.from({ length: WORKERS }, async (_, i) => {
            const pixels = image(round * WORKERS + i);
            await engine.matte(pixels, planFor(spec.name, pixels));
            return Buffer.from(pixels.data);
          }),
        ),
      ),
    );
    const [first = [], second = []] = results;
    for (const [i, bytes] of first.entries()) t.true(second[i]?.equals(bytes), `round ${round}: ${i}`);
    t.false(first[0]?.equals(first[1] ?? Buffer.alloc(0)));
  }
  t.deepEqual(alone.stats().devices, []);
  const { batches = [], waits = [] } = batched.stats().devices[0] ?? {};
  t.is(batches.length, 5);
  t.is(imagesOf(batches), 6 * WORKERS);
  t.is(
    waits.reduce((sum, [, count]) => sum + count, 0),
    6 * WORKERS,
  );
  t.true(
    batches.slice(2).some((count) => count > 0),
    `${batches}`,
  );
  t.log(batches);
});

for (const deviceIds of [[0], [0, 5]]) {
  const copies = deviceIds.length;
  test(`while a network is opened, the statistics say which size on which of several devices, of ${copies}`, async (t) => {
    const spec = networks.spec(`steps-${copies}`, { convolutions: 4, width: 256, height: 256, batch: true });
    const engine = createEngine(loadAddon(), engineOptions({ maxBatch: 6, deviceIds }));
    t.teardown(() => engine.close(0));
    t.deepEqual(engine.stats().opening, []);
    const seen: string[] = [];
    let seconds = 0;
    let over = false;
    const loading = engine.load(spec).finally(() => {
      over = true;
    });
    while (!over) {
      for (const { network, device, batch, step, steps, ...rest } of engine.stats().opening) {
        const said = `${network} ${device} ${batch}: ${step} of ${steps}`;
        if (seen.at(-1) !== said) seen.push(said);
        t.true(rest.seconds >= seconds);
        seconds = rest.seconds;
      }
      await sleep(1);
    }
    await loading;
    const sizes = [1, 3, 6];
    const expected = deviceIds.flatMap((id, i) => {
      const device = copies > 1 ? id : undefined;
      return sizes.map((batch, j) => `${spec.name} ${device} ${batch}: ${3 * i + j + 1} of ${3 * copies}`);
    });
    // On a busy machine a short step may pass between two looks.
    t.deepEqual(
      seen,
      expected.filter((step) => seen.includes(step)),
    );
    t.true(seen.length >= 2 * copies, `${seen}`);
    t.true(seconds > 0);
    t.deepEqual(engine.stats().opening, []);
  });
}

test('an image that is cancelled in a batch or before it does not disturb the others', async (t) => {
  const spec = networks.spec('cancelled', { convolutions: 4, batch: true });
  const engine = await open(t, spec, { maxBatch: 4, batchDelayMs: 2 });
  let cancelled = 0;
  for (let round = 0; round < 10; round++) {
    const control = new AbortController();
    const jobs = Array.from({ length: WORKERS }, (_, i) => {
      const pixels = image(i);
      const signal = i % 3 === 0 ? control.signal : undefined;
      return engine.matte(pixels, planFor(spec.name, pixels), { signal });
    });
    setTimeout(() => control.abort(), round / 2);
    for (const [i, outcome] of (await Promise.allSettled(jobs)).entries()) {
      if (outcome.status === 'fulfilled') continue;
      t.is(i % 3, 0, String(outcome.reason));
      t.like(outcome.reason, { code: 'ENGINE_CANCELLED' });
      cancelled++;
    }
  }
  t.true(cancelled > 0);
  t.is(engine.stats().done, 10 * WORKERS - cancelled + 1);
});

test('the second runs of previews with ambiguous answers take part in batches', async (t) => {
  const spec = networks.spec('ambiguous', { width: 16, height: 16, batch: true, free: true });
  const engine = await open(t, spec, { maxBatch: 4, batchDelayMs: 5 });
  // Middle gray: a logit of 0 everywhere.
  const gray = () => ({ data: new Uint8Array(64 * 64 * 4).fill(128), width: 64, height: 64 });
  const results = await Promise.all(
    Array.from({ length: WORKERS }, (_, i) => {
      const pixels = i % 2 === 0 ? gray() : image(i);
      const small = i % 2 === 0 ? { input: { width: 8, height: 8 } } : {};
      return engine.matte(pixels, planFor(spec.name, pixels, small));
    }),
  );
  t.deepEqual(
    results.map(({ runs }) => runs),
    results.map((_, i) => (i % 2 === 0 ? 2 : 1)),
  );
  t.is(imagesOf(engine.stats().devices[0]?.batches ?? []), WORKERS);
});

test('a network of one image at a time is used without batches', async (t) => {
  const spec = networks.spec('single');
  const engine = await open(t, spec, { maxBatch: 4 });
  const pixels = image(1);
  await engine.matte(pixels, planFor(spec.name, pixels));
  t.deepEqual(engine.stats().devices, []);
});

test('several devices share the images, whose bytes are those of one', async (t) => {
  const spec = networks.spec('several', { width: 64, height: 64, batch: true, convolutions: 3 });
  const alone = await open(t, spec, {});
  const several = await open(t, spec, { deviceIds: [0, 1, 2], maxBatch: 2, batchDelayMs: 1 });
  for (let round = 0; round < 5; round++) {
    const [first = [], second = []] = await Promise.all(
      [alone, several].map((engine) =>
        Promise.all(
          Array.from({ length: WORKERS }, async (_, i) => {
            const pixels = image(round * WORKERS + i);
            await engine.matte(pixels, planFor(spec.name, pixels));
            return Buffer.from(pixels.data);
          }),
        ),
      ),
    );
    for (const [i, bytes] of first.entries()) t.true(second[i]?.equals(bytes), `round ${round}: ${i}`);
  }
  const { devices } = several.stats();
  t.deepEqual(
    devices.map(({ id, lost, losses }) => ({ id, lost, losses })),
    [0, 1, 2].map((id) => ({ id, lost: undefined, losses: 0 })),
  );
  const images = devices.map(({ batches }) => imagesOf(batches));
  t.is(
    images.reduce((sum, count) => sum + count),
    5 * WORKERS,
  );
  t.true(
    images.every((count) => count > 0),
    `${images}`,
  );
  t.deepEqual(alone.stats().devices, []);
});

test('several devices without batches take one image at a time each', async (t) => {
  const spec = networks.spec('pair');
  const engine = await open(t, spec, { deviceIds: [0, 1] });
  await Promise.all(
    Array.from({ length: WORKERS }, (_, i) => {
      const pixels = image(i);
      return engine.matte(pixels, planFor(spec.name, pixels));
    }),
  );
  const sizes = engine.stats().devices.map(({ batches }) => batches.length);
  t.deepEqual(sizes, [2, 2]);
});
