import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { root } from '../../bench/lib/paths.ts';
import { unless } from '../fixtures/leftOut.ts';

const CASES = 10_000;
const native = path.join(root, 'build', 'native');
const library = path.join(native, 'Release', 'libcutout_cuda.so');

interface Run {
  readonly status: number | null;
  readonly output: string;
  readonly errors: string;
}

/** test/stress/cuda.cc; it ends with 0 if every difference is within its limit. */
function stress(...args: readonly string[]): Run {
  const { status, stdout, stderr } = spawnSync(path.join(native, 'cuda_stress'), args, { encoding: 'utf8' });
  return { status, output: stdout, errors: stderr };
}

interface Outcome {
  readonly kernel: string;
  readonly executor: string;
  readonly cases: number;
  readonly largest: number;
}

const outcomes = (output: string): Outcome[] =>
  [...output.matchAll(/^(\w+) (forwards|backwards|shuffled|device) (\d+) (\S+) \S+$/gm)].map(
    ([, kernel = '', executor = '', cases, largest]) => ({
      kernel,
      executor,
      cases: Number(cases),
      largest: Number(largest),
    }),
  );

test('kernels for a GPU give what the CPU gives, in 10,000 random cases on the host', (t) => {
  const { status, output, errors } = stress(String(CASES));
  t.is(status, 0, output + errors);
  t.regex(output, /^0 labels of components are wrong$/m);
  for (const order of ['forwards', 'backwards', 'shuffled']) {
    const all = outcomes(output).filter(({ executor }) => executor === order);
    t.true(all.length >= 10, output);
    t.true(all.reduce((sum, { cases }) => sum + cases, 0) >= CASES, output);
    t.deepEqual(
      all.filter(({ largest }) => largest !== 0),
      [],
      'on the host all are bit-equal',
    );
  }
});

unless(existsSync(library) ? undefined : 'nvcc of CUDA 13')(
  'libcutout_cuda.so opens without a GPU and has the kernels; with one they give what the CPU gives',
  (t) => {
    const { status, output, errors } = stress('500', library);
    t.is(status, 0, output + errors);
    t.regex(output, /^library opened, (runs on the device|not run on a GPU: .+)$/m);
    t.is(
      outcomes(output).some(({ executor }) => executor === 'device'),
      output.includes('runs on the device'),
    );
  },
);

test('a file that is not the library of the kernels is an error that says so', (t) => {
  const wrong = stress('1', path.join(native, 'Release', 'libcutout_fake_driver.so'));
  t.is(wrong.status, 1);
  t.regex(wrong.errors, /is not the library with the kernels for a GPU: it has no cutout_cuda_table/);
  const missing = stress('1', path.join(native, 'no.so'));
  t.is(missing.status, 1);
  t.regex(missing.errors, /cannot be opened: .*no\.so/);
});
