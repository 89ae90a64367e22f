import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { rewrite } from '../../src/compiler/compile.ts';
import { runNetwork } from '../compiler/run.ts';
import { bf16ByDefinition, toBf16 } from '../fixtures/bf16Oracle.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { type ConvShape, NetworkBuilder } from '../fixtures/lowPrecisionNetworks.ts';
import { random } from '../fixtures/random.ts';
import { countRefused, damagedCodes } from './damagedPrograms.ts';
import { lowPrecisionAddon, type Program, programOf } from './lowPrecisionAddon.ts';

const { runProgram, programKernels, passesSelfCheck } = lowPrecisionAddon;
const kernels = programKernels(true);

type Build = (builder: NetworkBuilder) => string;
type Size = readonly [width: number, height: number];

function present(t: ExecutionContext): boolean {
  if (kernels.length > 0) return true;
  sayLeftOut(t, 'this processor has no dot products of bf16');
  return false;
}

function imageOf([width, height]: Size, seed = 1): Float32Array {
  const next = random(seed);
  return Float32Array.from({ length: 3 * width * height }, () => next() * 2 - 1);
}

interface Made {
  /** The network as it was before preparation. */
  readonly file: Uint8Array;
  readonly output: string;
  readonly program: Program;
}

function make(build: Build, [width, height]: Size): Made {
  const builder = new NetworkBuilder(7);
  const output = build(builder);
  const { file } = builder.build(output, width, height);
  const made = rewrite(file, undefined, 'bf16');
  return { file, output, program: programOf(new Uint8Array(Buffer.concat([...made.pieces]))) };
}

/** With every kernel, alone and on threads: threads must not change a byte. */
function runAll(t: ExecutionContext, { program }: Made, image: Float32Array, size: Size): Float32Array[] {
  return kernels.map((kernel) => {
    const [alone, shared] = [0, 3].map(
      (threads) => runProgram(program, image, ...size, kernel, threads)[0] ?? new Float32Array(),
    );
    t.deepEqual(shared, alone, kernel);
    return alone ?? new Float32Array();
  });
}

function check(t: ExecutionContext, build: Build, sizes: readonly Size[]): void {
  for (const size of sizes) {
    const made = make(build, size);
    const image = imageOf(size);
    const { values, bounds } = bf16ByDefinition(made.file, image, ...size).get(made.output) ?? {};
    if (!values || !bounds) throw new Error('the network has no such output');
    for (const [k, found] of runAll(t, made, image, size).entries()) {
      const what = `${kernels[k]}, ${size.join(' x ')}`;
      t.is(found.length, values.length, what);
      const wrong = found.findIndex((value, i) => !(Math.abs(value - (values[i] ?? 0)) <= (bounds[i] ?? 0)));
      t.is(wrong, -1, `${what}: ${found[wrong]} for ${values[wrong]} within ${bounds[wrong]}`);
    }
    // The bounds mean something: nearly every value has to be the very one, where values are bf16.
    t.true(new Set(values).size > Math.min(10, values.length / 4), size.join(' x '));
  }
}

const sizes: readonly Size[] = [
  [1, 1],
  [2, 3],
  [17, 5],
  [40, 33],
];

const shapes: readonly ConvShape[] = [
  { channels: 16, kernel: 1 },
  { channels: 16 },
  { channels: 32, stride: 2 },
  { channels: 48, relu: false },
  { channels: 64, dilation: 2 },
  { channels: 16, dilation: 4 },
  { channels: 80, kernel: 1, stride: 2 },
];

for (const from of [16, 32, 48, 64]) {
  test(`convolutions of ${from} channels of bf16, in every kernel`, (t) => {
    if (!present(t)) return;
    t.timeout(240_000);
    for (const [i, shape] of shapes.entries()) {
      check(t, (b) => b.conv(b.conv('image', { channels: from }), shape), [sizes[i % 4] ?? [9, 9], [23, 9]]);
    }
  });
}

test('the image itself is convolved in bf16 at every size', (t) => {
  if (!present(t)) return;
  check(t, (b) => b.conv('image', { channels: 16 }), sizes);
  check(t, (b) => b.conv('image', { channels: 32, stride: 2 }), sizes);
  check(t, (b) => b.conv('image', { channels: 16, kernel: 1 }), sizes);
});

test('convolutions of one channel, and of channels that are no whole groups, give floats', (t) => {
  if (!present(t)) return;
  check(t, (b) => b.conv(b.conv('image', { channels: 16 }), { channels: 1, relu: false }), sizes);
  check(t, (b) => b.conv(b.conv('image', { channels: 32 }), { channels: 20 }), sizes);
});

test('maps of bf16 are pooled, enlarged, added and joined', (t) => {
  if (!present(t)) return;
  t.timeout(240_000);
  const stem = (b: NetworkBuilder, relu: boolean) => b.conv('image', { channels: 32, relu });
  // Of both signs: the largest of negative numbers too.
  check(t, (b) => b.pool(stem(b, false), true), sizes);
  check(t, (b) => b.pool(stem(b, true), false), sizes.slice(1));
  for (const factor of [2, 4, 8]) check(t, (b) => b.resize(stem(b, false), factor), sizes.slice(0, 3));
  check(
    t,
    (b) => {
      const map = stem(b, false);
      return b.add(b.conv(map, { channels: 32, kernel: 1 }), map);
    },
    sizes,
  );
  check(
    t,
    (b) => {
      const map = b.conv('image', { channels: 16 });
      const [one, two] = [b.conv(map, { channels: 16 }), b.conv(map, { channels: 32, dilation: 2 })];
      const inner = b.concat(one, two);
      return b.conv(b.concat(b.conv(inner, { channels: 16 }), inner, map, one, one), { channels: 32 });
    },
    sizes,
  );
});

test("a map is enlarged to the size of another one, as networks of IS-Net's kind are published", (t) => {
  if (!present(t)) return;
  const build: Build = (b) => {
    const stem = b.conv('image', { channels: 16 });
    const small = b.conv(b.pool(stem, true), { channels: 16 });
    return b.conv(b.concat(b.resizeTo(small, stem), stem), { channels: 1, relu: false });
  };
  const size: Size = [16, 8];
  const image = imageOf(size);
  // Equal to the same network that says by how much.
  const scaled = make((b) => {
    const stem = b.conv('image', { channels: 16 });
    const small = b.conv(b.pool(stem, true), { channels: 16 });
    return b.conv(b.concat(b.resize(small, 2), stem), { channels: 1, relu: false });
  }, size);
  t.deepEqual(runAll(t, make(build, size), image, size), runAll(t, scaled, image, size));
});

/** A small network with everything that the operator knows. */
const everything: Build = (b) => {
  const stem = b.conv('image', { channels: 16 });
  const deep = b.conv(b.pool(stem, true), { channels: 32, dilation: 2 });
  const sum = b.add(b.conv(deep, { channels: 32 }), deep);
  const joined = b.concat(b.resize(sum, 2), stem);
  return b.conv(b.conv(joined, { channels: 32, stride: 2 }), { channels: 1, relu: false });
};

test('it gives what ONNX Runtime gives in floats, but for the rounding', async (t) => {
  if (!present(t)) return;
  t.timeout(120_000);
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-bf16-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const size: Size = [24, 16];
  const made = make(everything, size);
  const file = path.join(folder, 'floats.onnx');
  await writeFile(file, made.file);
  const image = imageOf(size);
  const wanted = await runNetwork(file, image, 1, { height: size[1], width: size[0] });
  const mean = (values: ArrayLike<number>) =>
    Array.from(values).reduce((sum, value) => sum + Math.abs(value), 0) / values.length;
  for (const found of runAll(t, made, image, size)) {
    const off = mean(found.map((value, i) => value - (wanted[i] ?? Number.NaN)));
    t.log(`mean difference ${off.toFixed(5)} of a mean ${mean(wanted).toFixed(3)}`);
    // 8 significant bits: 2^-9 of a value on average, a few times over.
    t.true(off < mean(wanted) / 100);
    t.true(off > 0);
  }
});

test('numbers are rounded to bf16 to the nearest, halves to the even one', (t) => {
  const cases: readonly (readonly [number, number])[] = [
    [1, 1],
    [1 + 2 ** -8, 1],
    [1 + 3 * 2 ** -8, 1 + 2 ** -6],
    [-(1 + 2 ** -8 + 2 ** -20), -(1 + 2 ** -7)],
    [0, 0],
    [3e38, 2 ** 127 * (1 + 98 / 128)],
  ];
  for (const [value, wanted] of cases) t.is(toBf16(value), wanted, String(value));
});

test('a kernel is used only if it computes a small product as plain arithmetic does', (t) => {
  if (!present(t)) return;
  for (const kernel of kernels) t.true(passesSelfCheck(kernel), kernel);
  t.false(passesSelfCheck('incomplete'));
});

test('what the operator cannot compute is refused', (t) => {
  const refused = (build: Build, message: RegExp) =>
    t.throws(() => make(build, [8, 8]), { instanceOf: RangeError, message });
  refused((b) => b.resize(b.conv('image', { channels: 16 }), 3), /no enlargement by a power of two/);
  // Of 10 channels, whose map is of floats.
  refused((b) => b.conv(b.conv('image', { channels: 10 }), { channels: 16 }), /not computed in bf16/);
});

test('a malformed program in bf16 is an error or runs inside its memory, never a crash', (t) => {
  if (!present(t)) return;
  t.timeout(240_000);
  const size: Size = [8, 8];
  const { program } = make(everything, size);
  const image = imageOf(size);
  const next = random(11);
  const pick = (count: number) => Math.floor(next() * count);
  const odd = [
    -1n,
    0n,
    1n,
    2n,
    3n,
    4n,
    10n,
    11n,
    15n,
    16n,
    31n,
    32n,
    64n,
    512n,
    65536n,
    2n ** 31n - 1n,
    2n ** 40n,
  ];
  const { code, floats, weights } = program;
  function* damaged() {
    yield* damagedCodes(code, { rounds: 3000, odd, pick });
    yield { weights: weights.slice(0, -1) };
    yield { floats: floats.slice(0, -1) };
    yield { floats: new Float32Array(floats.length).fill(Number.NaN) };
    yield { weights: new Int8Array(weights.length).fill(0x7f) };
  }
  const refused = countRefused(
    t,
    damaged(),
    (changed) =>
      runProgram({ ...program, ...changed }, image, ...size, kernels[pick(kernels.length)] ?? '', 0),
    /low-precision part of the network|too large for|size of the|allocation|of other/i,
  );
  t.true(refused > 1000, `${refused} refused`);
});
