import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import type { Engine } from '../../src/engine/engine.ts';
import { IdleUnloadEngine } from '../../src/engine/idleUnload.ts';
import type { MattePlan } from '../../src/engine/types.ts';

const pixels = { data: new Uint8Array(4), width: 1, height: 1 };
const plan: MattePlan = { network: 'n', width: 1, height: 1, hiddenColour: 'clear' };
const afterMs = 1000;

// Time is advanced by the tests, which are serial because they share it.
const { timers } = mock;
test.before(() => timers.enable({ apis: ['setTimeout'] }));
test.after.always(() => timers.reset());

/** Advances the time and lets everything complete that needs no more of it. */
async function pass(ms: number): Promise<void> {
  timers.tick(ms);
  for (let turns = 0; turns < 5; turns++) await turn();
}

/** An engine whose network is loaded or not, and a loader that loads it at once or when `held` resolves. */
function setUp() {
  const state = {
    loaded: true,
    loads: 0,
    unloads: 0,
    mattes: 0,
    failing: false,
    held: Promise.resolve(),
    changes: [] as string[],
  };
  const engine = {
    unload: async () => {
      state.unloads++;
      state.loaded = false;
    },
    matte: async () => {
      if (!state.loaded) throw new Error('no network');
      state.mattes++;
      await turn();
      return {};
    },
  } as unknown as Engine;
  const load = async () => {
    state.loads++;
    await state.held;
    if (state.failing) throw new Error('gone from the disk');
    state.loaded = true;
  };
  const onChange = (what: string) => void state.changes.push(what);
  return { state, idleUnloadEngine: new IdleUnloadEngine(engine, { afterMs, load, onChange }) };
}

test.serial('unloads after a time without work; concurrent callers share one load', async (t) => {
  const { state, idleUnloadEngine } = setUp();
  await idleUnloadEngine.matte(pixels, plan);
  await pass(afterMs - 1);
  t.true(state.loaded, 'its time is not over');
  await pass(1);
  t.false(state.loaded);
  t.is(state.unloads, 1);
  await Promise.all(Array.from({ length: 10 }, () => idleUnloadEngine.matte(pixels, plan)));
  t.is(state.loads, 1);
  t.is(state.mattes, 11);
  t.true(state.loaded);
  t.is(state.unloads, 1);
  t.deepEqual(state.changes, ['unloaded', 'loaded']);
  idleUnloadEngine.stop();
  await pass(10 * afterMs);
  t.true(state.loaded, 'not after stop');
});

test.serial('work keeps the network loaded', async (t) => {
  const { state, idleUnloadEngine } = setUp();
  for (let i = 0; i < 6; i++) {
    await idleUnloadEngine.matte(pixels, plan);
    await pass(afterMs / 2);
  }
  t.is(state.unloads, 0);
  t.true(state.loaded);
  idleUnloadEngine.stop();
});

test.serial('a caller that aborts leaves the load to the others', async (t) => {
  const { state, idleUnloadEngine } = setUp();
  await pass(afterMs);
  let release = () => {};
  state.held = new Promise((resolve) => {
    release = resolve;
  });
  const leaving = new AbortController();
  const gone = idleUnloadEngine.matte(pixels, plan, { signal: leaving.signal });
  const other = idleUnloadEngine.matte(pixels, plan);
  await pass(0);
  t.is(state.loads, 1);
  leaving.abort(new Error('time is up'));
  await t.throwsAsync(gone, { message: 'time is up' });
  t.false(state.loaded, 'it did not wait');
  release();
  await other;
  t.is(state.loads, 1);
  idleUnloadEngine.stop();
});

test.serial('a failed load rejects for those who waited, and the next call tries again', async (t) => {
  const { state, idleUnloadEngine } = setUp();
  await pass(afterMs);
  state.failing = true;
  const both = [idleUnloadEngine.matte(pixels, plan), idleUnloadEngine.matte(pixels, plan)];
  t.true(idleUnloadEngine.isUsable);
  for (const one of both)
    await t.throwsAsync(one, { code: 'ENGINE_NOT_LOADED', message: 'gone from the disk' });
  t.is(state.loads, 1);
  t.false(idleUnloadEngine.isUsable);
  state.failing = false;
  await idleUnloadEngine.matte(pixels, plan);
  t.is(state.loads, 2);
  t.true(idleUnloadEngine.isUsable);
  idleUnloadEngine.stop();
});

test.serial('after a failed load it tries again by itself, until it is stopped', async (t) => {
  const { state, idleUnloadEngine } = setUp();
  await pass(afterMs);
  state.failing = true;
  await t.throwsAsync(idleUnloadEngine.matte(pixels, plan), { code: 'ENGINE_NOT_LOADED' });
  await pass(10_000);
  t.deepEqual([state.loads, idleUnloadEngine.isUsable], [2, false]);
  state.failing = false;
  await pass(10_000);
  t.deepEqual([state.loads, idleUnloadEngine.isUsable], [3, true]);
  await pass(afterMs);
  t.false(state.loaded, 'and unloads it when nobody needs it');
  state.failing = true;
  await t.throwsAsync(idleUnloadEngine.matte(pixels, plan), { code: 'ENGINE_NOT_LOADED' });
  idleUnloadEngine.stop();
  await pass(30_000);
  t.is(state.loads, 4);
});
