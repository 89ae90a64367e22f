import { mock } from 'node:test';
import test from 'ava';
import type { NetworkInfo, NetworkSpec, OpeningStep } from '../../src/engine/types.ts';
import type { Progress } from '../../src/models/observer.ts';
import { loadWithNotices } from '../../src/server/openNetwork.ts';

const { timers } = mock;
test.before(() => timers.enable({ apis: ['setInterval'] }));
test.after.always(() => timers.reset());

const spec = { name: 'isnet' } as NetworkSpec;
const info = { loadMs: 1 } as NetworkInfo;

/** An engine that opens isnet until it is released, beside another network. */
function slow(steps: number) {
  const engine = { step: 1, batch: 1, seconds: 0, release: (_: NetworkInfo | Error): void => {} };
  const held = new Promise<NetworkInfo>((resolve, reject) => {
    engine.release = (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome));
  });
  const other: OpeningStep = { network: 'u2net', device: 3, batch: 1, step: 1, steps: 4, seconds: 500 };
  const stats = () => {
    const { step, batch, seconds } = engine;
    return { opening: [other, { network: 'isnet', device: 0, batch, step, steps, seconds }] };
  };
  const lines: string[] = [];
  const told: Progress[] = [];
  const observer = {
    notice: (text: string) => void lines.push(text),
    progress: (progress: Progress) => void told.push(progress),
  };
  const loading = loadWithNotices({ load: () => held, stats }, observer)(spec);
  const pass = (seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      engine.seconds++;
      timers.tick(1000);
    }
  };
  return { engine, loading, lines, told, pass };
}

test.serial(
  'a load that takes long says what is opened: each step once, and the time every ten seconds',
  async (t) => {
    const { engine, loading, lines, told, pass } = slow(2);
    pass(9);
    t.deepEqual(lines, []);
    pass(11);
    Object.assign(engine, { step: 2, batch: 2 });
    pass(10);
    t.deepEqual(lines, [
      'Opening isnet for single images on device 0, step 1 of 2, 10 s so far.',
      'Opening isnet for single images on device 0, step 1 of 2, 20 s so far.',
      'Opening isnet for batches of 2 on device 0, step 2 of 2, 30 s so far.',
    ]);
    t.deepEqual(
      told.map(({ phase, network, step }) => [phase, network, step?.step, step?.batch]),
      [
        ['open', 'isnet', 1, 1],
        ['open', 'isnet', 2, 2],
      ],
    );
    engine.release(info);
    t.is(await loading, info);
    pass(60);
    t.deepEqual([lines.length, told.length], [3, 2]);
  },
);

test.serial('a network that is opened in one step is not announced before ten seconds', async (t) => {
  const { engine, loading, lines, told, pass } = slow(1);
  pass(10);
  t.deepEqual(told, []);
  t.deepEqual(lines, ['Opening isnet for single images on device 0, step 1 of 1, 10 s so far.']);
  engine.release(info);
  await loading;
});

test.serial('a load that fails says nothing more', async (t) => {
  const { engine, loading, lines, told, pass } = slow(3);
  engine.release(new Error('torn'));
  await t.throwsAsync(loading, { message: 'torn' });
  pass(60);
  t.deepEqual([lines, told], [[], []]);
});
