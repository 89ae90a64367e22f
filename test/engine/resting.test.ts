import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import type { Engine } from '../../src/engine/engine.ts';
import { RestingEngine } from '../../src/engine/resting.ts';
import type { MattePlan } from '../../src/engine/types.ts';

const pixels = { data: new Uint8Array(4), width: 1, height: 1 };
const plan: MattePlan = { network: 'n', width: 1, height: 1, hiddenColour: 'clear' };

/** An engine that only has its network or has not, and an owner that loads it. */
function setUp(afterMs: number) {
  const state = { loaded: true, loads: 0, mattes: 0, failing: false, loadMs: 20, told: [] as string[] };
  const engine = {
    unload: async () => {
      state.loaded = false;
    },
    matte: async () => {
      if (!state.loaded) throw new Error('no network');
      state.mattes++;
      await sleep(5);
      return {};
    },
  } as unknown as Engine;
  const load = async () => {
    state.loads++;
    await sleep(state.loadMs);
    if (state.failing) throw new Error('gone from the disk');
    state.loaded = true;
  };
  const told = (what: string) => void state.told.push(what);
  return { state, resting: new RestingEngine(engine, { afterMs, load, told }) };
}

test('rests after a time without work; all who come then share one load', async (t) => {
  const { state, resting } = setUp(40);
  await resting.matte(pixels, plan);
  t.true(state.loaded);
  await sleep(100);
  t.false(state.loaded);
  t.deepEqual(resting.stats, { loaded: false, loads: 0, unloads: 1 });
  await Promise.all(Array.from({ length: 10 }, () => resting.matte(pixels, plan)));
  t.is(state.loads, 1);
  t.is(state.mattes, 11);
  t.deepEqual(resting.stats, { loaded: true, loads: 1, unloads: 1 });
  t.deepEqual(state.told, ['unloaded', 'loaded']);
  resting.stop();
  await sleep(100);
  t.true(state.loaded, 'not after stop');
});

test('work keeps it awake', async (t) => {
  const { state, resting } = setUp(60);
  for (let i = 0; i < 6; i++) {
    await resting.matte(pixels, plan);
    await sleep(20);
  }
  t.is(resting.stats.unloads, 0);
  t.true(state.loaded);
  resting.stop();
});

test('who cannot wait for the load leaves it to the others', async (t) => {
  const { state, resting } = setUp(30);
  await sleep(70);
  state.loadMs = 150;
  const leaving = new AbortController();
  const gone = resting.matte(pixels, plan, { signal: leaving.signal });
  const other = resting.matte(pixels, plan);
  const started = performance.now();
  setTimeout(() => leaving.abort(new Error('time is up')), 20);
  await t.throwsAsync(gone, { message: 'time is up' });
  t.true(performance.now() - started < 120);
  await other;
  t.is(state.loads, 1);
  resting.stop();
});

test('a load that fails is told to those who waited, and the next call tries again', async (t) => {
  const { state, resting } = setUp(30);
  await sleep(70);
  state.failing = true;
  const both = [resting.matte(pixels, plan), resting.matte(pixels, plan)];
  for (const one of both) await t.throwsAsync(one, { message: 'gone from the disk' });
  t.is(state.loads, 1);
  state.failing = false;
  await resting.matte(pixels, plan);
  t.is(state.loads, 2);
  resting.stop();
});
