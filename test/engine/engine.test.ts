import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine } from '../../src/engine/engine.ts';
import { EngineError, isEngineCode } from '../../src/engine/types.ts';
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
  t.true(isEngineCode('ENGINE_DEADLINE'));
  t.false(isEngineCode('ENGINE_NOTHING'));
  t.false(isEngineCode(undefined));
});
