import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { root } from '../../bench/lib/paths.ts';
import { unless } from '../fixtures/leftOut.ts';

const native = path.join(root, 'build', 'native');
const library = path.join(native, 'Release', 'libcutout_cuda.so');

/** test/stress/device.cc; it ends with 0 if everything is as it should be. */
function stress(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(path.join(native, 'device_stress'), args, {
    encoding: 'utf8',
  });
  return { status, output: stdout, errors: stderr };
}

test('the backend of a device gives the mattes of the CPU, and survives every failure of the device', (t) => {
  const { status, output, errors } = stress('300');
  t.is(status, 0, output + errors);
  t.regex(output, /^300 jobs like the CPU's$/m);
  const failed = [...output.matchAll(/^([\w -]+): (\d+) calls failed in turn$/gm)];
  t.deepEqual(
    failed.map(([, what]) => what),
    ['device memory', 'page-locked memory', 'one call', 'device lost'],
  );
  t.true(failed.every(([, , calls]) => Number(calls) > 0));
});

unless(existsSync(library) ? undefined : 'nvcc of CUDA 13')(
  'the backend opens libcutout_cuda.so without a GPU; with one its mattes are those of the CPU',
  (t) => {
    const { status, output, errors } = stress('20', library);
    t.is(status, 0, output + errors);
    t.regex(output, /^library opened, (20 jobs on the device|not run on a GPU: .+)$/m);
  },
);
