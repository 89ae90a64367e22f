import { mock } from 'node:test';
import test from 'ava';
import type { NetworkInfo, NetworkSpec } from '../../src/engine/types.ts';
import { loadWithNotices } from '../../src/server/loadNotices.ts';

const { timers } = mock;
test.before(() => timers.enable({ apis: ['setInterval'] }));
test.after.always(() => timers.reset());

const spec = { name: 'isnet' } as NetworkSpec;
const info = { loadMs: 1 } as NetworkInfo;

test.serial('a load that takes long says so every ten seconds, and nothing after its end', async (t) => {
  const lines: string[] = [];
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const load = loadWithNotices({ load: () => held.then(() => info) }, 4, {
    notice: (text) => void lines.push(text),
  });
  const loading = load(spec);
  timers.tick(9_999);
  t.deepEqual(lines, []);
  timers.tick(20_001);
  t.deepEqual(
    lines,
    [10, 20, 30].map(
      (s) => `isnet is being opened and warmed up, with batches of up to 4 images: ${s} s so far.`,
    ),
  );
  release();
  t.is(await loading, info);
  timers.tick(60_000);
  t.is(lines.length, 3);
});

test.serial('a load that fails says nothing more', async (t) => {
  const lines: string[] = [];
  const load = loadWithNotices({ load: () => Promise.reject(new Error('torn')) }, 1, {
    notice: (text) => void lines.push(text),
  });
  await t.throwsAsync(load(spec), { message: 'torn' });
  timers.tick(60_000);
  t.deepEqual(lines, []);
});
