import { randomFillSync } from 'node:crypto';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine } from '../../src/engine/engine.ts';
import { EngineError, isEngineCode, type MattePlan } from '../../src/engine/types.ts';
import { engineOptions, halves, Networks, planFor, until } from '../fixtures/engineSetup.ts';

const networks = new Networks();
test.after.always(() => networks.remove());

const start = (changes = {}) => createEngine(loadAddon(), engineOptions(changes));

test('loads, cuts out, encodes and closes', async (t) => {
  const engine = start();
  const spec = networks.spec('simple');
  t.is((await engine.load(spec)).name, 'simple');
  const image = halves(100, 50);
  t.is((await engine.matte(image, planFor('simple', image))).height, 50);
  t.true((await engine.encodePng(image, { channels: 'rgba', effort: 1 })).length > 60);
  await engine.close(1000);
  t.like(engine.stats(), { queued: 0, running: 0, done: 3, failed: 0, cancelled: 0 });
});

test('errors are EngineError with code, cause and the stack of the caller', async (t) => {
  const engine = start();
  async function theCaller() {
    await engine.load({ ...networks.spec('stack'), path: path.join(networks.folder, 'none.onnx') });
  }
  const error = await t.throwsAsync(theCaller(), { instanceOf: EngineError, code: 'ENGINE_MODEL' });
  t.true(error.cause instanceof Error);
  t.regex(error.stack ?? '', /^EngineError: The network file .*\n\s+at .*\n(.*\n)*.*theCaller/);
  await engine.close(0);
  await t.throwsAsync(engine.load(networks.spec('late')), { instanceOf: EngineError, code: 'ENGINE_CLOSED' });
});

test('misuse stays a TypeError or RangeError', async (t) => {
  const engine = start();
  const image = halves(10, 10);
  await t.throwsAsync(engine.matte(image, planFor('x', image, { width: 11 })), {
    instanceOf: RangeError,
  });
  t.throws(() => start({ workers: 0 }), { instanceOf: RangeError });
  await engine.close(0);
});

test('an aborted signal cancels waiting and running jobs, and keeps a job from starting', async (t) => {
  const engine = start();
  const spec = networks.slow('abort', 60);
  const { warmUpMs } = await engine.load(spec);
  const controllers = [new AbortController(), new AbortController(), new AbortController()] as const;
  const job = (controller: AbortController) => {
    const image = halves(256, 256);
    return engine.matte(image, planFor('abort', image), { signal: controller.signal });
  };
  const running = job(controllers[0]);
  const waiting = job(controllers[1]);
  await until(engine, (stats) => stats.running === 1);
  await sleep(20);
  const asked = performance.now();
  controllers[1].abort();
  await t.throwsAsync(waiting, { code: 'ENGINE_CANCELLED' });
  controllers[0].abort();
  await t.throwsAsync(running, { code: 'ENGINE_CANCELLED' });
  t.true(performance.now() - asked < warmUpMs / 2);
  controllers[2].abort(new Error('gone'));
  const error = await t.throwsAsync(job(controllers[2]), {
    instanceOf: EngineError,
    code: 'ENGINE_CANCELLED',
  });
  t.is((error.cause as Error).message, 'gone');
  t.is(engine.stats().cancelled, 2);
  await engine.close(0);
});

test('a matte is cancelled in the middle of its refinement', async (t) => {
  const engine = start();
  await engine.load(networks.spec('uncertain', { width: 512, height: 512, gain: 4 }));
  // The network is uncertain of every pixel of noise, so that each is refined.
  const [width, height] = [4000, 3000];
  const noise = randomFillSync(new Uint8Array(width * height * 4));
  const image = () => ({ data: noise.slice(), width, height });
  const plan = planFor('uncertain', { width, height });
  const { matteMs, prepareMs, inferMs } = await engine.matte(image(), plan);
  const late: number[] = [];
  for (let i = 1; late.length < 9; i++) {
    const controller = new AbortController();
    const cancelled = engine.matte(image(), plan, { signal: controller.signal });
    await sleep(prepareMs + inferMs + (matteMs * (i % 9)) / 20);
    const asked = performance.now();
    controller.abort();
    const ended = await cancelled.then(
      () => 'done',
      (error: unknown) => error instanceof EngineError && error.code,
    );
    if (ended === 'done') continue;
    t.is(ended, 'ENGINE_CANCELLED');
    late.push(performance.now() - asked);
  }
  const median = late.sort((a, b) => a - b)[4] ?? 0;
  t.log(
    `${matteMs.toFixed(0)} ms of work, cancelled within ${late.map((ms) => ms.toFixed(1)).join(', ')} ms`,
  );
  // A step of the refinement is a fifth of it and more.
  t.true(median < Math.max(20, matteMs / 20), `${median} ms`);
  const next = halves(64, 64);
  t.is((await engine.matte(next, planFor('uncertain', next))).width, 64);
  await engine.close(0);
});

test('a signal that aborts after the end has no effect, and no listener is left on it', async (t) => {
  const engine = start();
  await engine.load(networks.spec('after'));
  const controller = new AbortController();
  let listeners = 0;
  const { signal } = controller;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--;
    remove(...args);
  };
  const image = halves(30, 30);
  await engine.matte(image, planFor('after', image), { signal });
  t.is(listeners, 0);
  controller.abort();
  await sleep(5);
  t.is(engine.stats().cancelled, 0);
  await engine.close(0);
});

test('isEngineCode accepts the codes and nothing else', (t) => {
  t.true(isEngineCode('ENGINE_CANCELLED'));
  t.false(isEngineCode('ENGINE_NOTHING'));
  t.false(isEngineCode(undefined));
});

test('the output that was kept serves another mask of the same part, and no network runs', async (t) => {
  const engine = start();
  await engine.load(networks.spec('kept'));
  const side = 320;
  const maskFrom = (from: number) => ({
    data: Uint8Array.from({ length: 64 * 64 }, (_, at) => {
      const [x, y] = [at % 64, Math.floor(at / 64)];
      return x >= from && x < from + 16 && y >= 20 && y < 40 ? 255 : 0;
    }),
    width: 64,
    height: 64,
  });
  const cut = async (from: number, plan: Partial<MattePlan>) => {
    const image = halves(side, side);
    const mask = maskFrom(from);
    const { runs, output } = await engine.matte(image, { ...planFor('kept', image), mask, ...plan });
    return { runs, output, pixels: Buffer.from(image.data) };
  };
  const first = await cut(20, { returnOutput: true });
  t.is(first.runs, 1);
  const kept = first.output;
  if (!kept) return t.fail('no output');
  t.is(kept.data.length, kept.width * kept.height * 4);
  for (const edge of Object.values(kept.view)) t.is(edge % (side / 16), 0, 'edges of the view lie on a grid');
  t.is((await cut(20, {})).output, undefined, 'only where it is asked for');
  const [fresh, again] = [
    await cut(21, { returnOutput: true }),
    await cut(21, { returnOutput: true, cached: kept }),
  ];
  t.deepEqual([fresh.runs, again.runs, again.output], [1, 0, undefined]);
  t.deepEqual(again.pixels, fresh.pixels, 'the same as without it');
  t.notDeepEqual(again.pixels, first.pixels);
  const moved = { returnOutput: true, firstMask: maskFrom(20) };
  const [freshly, shared] = [await cut(22, moved), await cut(22, { ...moved, cached: kept })];
  t.deepEqual([freshly.runs, shared.runs, freshly.output?.view], [1, 0, kept.view]);
  t.deepEqual(shared.pixels, freshly.pixels, 'the part of the first mask serves it too');
  t.is((await cut(22, { returnOutput: true, cached: kept })).runs, 1, 'not without it');
  const elsewhere = await cut(44, { returnOutput: true, cached: kept });
  t.is(elsewhere.runs, 1);
  t.notDeepEqual(elsewhere.output?.view, kept.view);
  const image = halves(side, side);
  const plan = { ...planFor('kept', image), mask: maskFrom(20), returnOutput: true };
  for (const wrong of [
    { ...kept, data: kept.data.subarray(4) },
    { ...kept, width: kept.width + 1 },
    { ...kept, view: { ...kept.view, width: side + 1 } },
  ]) {
    await t.throwsAsync(engine.matte(image, { ...plan, cached: wrong }), { instanceOf: RangeError });
  }
  const firstMask = { ...maskFrom(20), width: 65 };
  await t.throwsAsync(engine.matte(image, { ...plan, firstMask }), { instanceOf: RangeError });
  await engine.close(0);
});
