import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { Networks } from '../fixtures/engineSetup.ts';

const networks = new Networks();
test.after.always(() => networks.remove());
const child = fileURLToPath(new URL('../fixtures/engineChild.js', import.meta.url));

async function play(scene: string, spec: object, nodeArguments: string[] = []) {
  const run = spawn(process.execPath, [...nodeArguments, child, JSON.stringify({ scene, spec })], {
    timeout: 60_000,
  });
  let out = '';
  let errors = '';
  run.stdout.on('data', (part) => {
    out += part;
  });
  run.stderr.on('data', (part) => {
    errors += part;
  });
  const [code, signal] = await once(run, 'close');
  return { code, signal, out: out.trim(), errors };
}

test('an idle engine that was never closed does not keep the process alive', async (t) => {
  t.deepEqual(await play('idle', networks.spec('idle')), { code: 0, signal: null, out: 'open', errors: '' });
});

test('a pending job keeps the process alive until it is done', async (t) => {
  const { code, out, errors } = await play('pending', networks.slow('pending', 8));
  t.is(errors, '');
  t.is(out, 'asked\nfinished');
  t.is(code, 0);
});

test('process.exit ends running jobs without a crash', async (t) => {
  const { code, signal, errors } = await play('exit', networks.slow('exit', 40));
  t.is(errors, '');
  t.deepEqual([code, signal], [7, null]);
});

test('an uncaught exception during a job ends the process as usual', async (t) => {
  const { code, signal, errors } = await play('throw', networks.slow('throw', 40));
  t.regex(errors, /on purpose/);
  t.deepEqual([code, signal], [1, null]);
});

test('engines that are no longer reachable join their threads', async (t) => {
  const { out, errors } = await play('collect', networks.spec('collect'), ['--expose-gc']);
  t.is(errors, '');
  t.is(out, 'left few');
});

test('memory of a run is returned to the system when the engine stays idle', async (t) => {
  // Two maps of 32 x 512 x 512 float32 at a time: 64 MB.
  const { code, out, errors } = await play(
    'memory',
    networks.spec('memory', { width: 512, height: 512, convolutions: 3 }),
  );
  t.is(errors, '');
  t.is(out, 'released');
  t.is(code, 0);
});

test('worker threads can be terminated at any moment', async (t) => {
  const result = await play('terminate', networks.slow('terminate', 2));
  t.deepEqual(result, { code: 0, signal: null, out: 'terminated 48', errors: '' });
});
