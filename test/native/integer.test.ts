import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { rewrite } from '../../src/compiler/compile.ts';
import { pack } from '../../src/compiler/lowPrecision/pack.ts';
import { ProgramWriter } from '../../src/compiler/lowPrecision/program.ts';
import { runNetwork } from '../compiler/run.ts';
import { byDefinition } from '../fixtures/integerOracle.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { leaveOutKernels } from '../fixtures/lowPrecisionKernels.ts';
import { type ConvShape, NetworkBuilder } from '../fixtures/lowPrecisionNetworks.ts';
import { random } from '../fixtures/random.ts';
import { countRefused, damagedCodes } from './damagedPrograms.ts';
import { lowPrecisionAddon, type Program, programOf } from './lowPrecisionAddon.ts';

const { runProgram, planBytes, programKernels } = lowPrecisionAddon;
const kernels = programKernels(false);
if (kernels.length > 0) leaveOutKernels(kernels);

function present(t: ExecutionContext): boolean {
  if (kernels.length > 0) return true;
  sayLeftOut(t, 'this processor has no kernel for 8-bit convolutions');
  return false;
}

/** Values (v - 128) / 256 of [3, height, width]. */
function imageOf(width: number, height: number, seed = 1): Float32Array {
  const next = random(seed);
  return Float32Array.from({ length: 3 * width * height }, () => (Math.floor(next() * 256) - 128) / 256);
}

interface Made {
  readonly standard: Uint8Array;
  readonly program: Program;
  /** Quantisation scale of the output. */
  readonly scale: number;
}

function make(build: (builder: NetworkBuilder) => string, width: number, height: number, seed = 7): Made {
  const builder = new NetworkBuilder(seed);
  const output = build(builder);
  const { file, table } = builder.build(output, width, height);
  const prepared = (form: 'int8' | 'int8-operators') => {
    const made = rewrite(file, undefined, form, table);
    return { operators: made.operators, bytes: new Uint8Array(Buffer.concat([...made.pieces])) };
  };
  const own = prepared('int8-operators');
  if (!own.operators) throw new Error('the network was not made one operator');
  return {
    standard: prepared('int8').bytes,
    program: programOf(own.bytes),
    scale: table.tensors[output]?.scale ?? 1 / 255,
  };
}

/** Largest difference of two maps in quantisation levels. */
const apart = (a: ArrayLike<number>, b: ArrayLike<number>, scale: number): number => {
  if (a.length !== b.length || a.length === 0) return Number.POSITIVE_INFINITY;
  let worst = 0;
  for (let i = 0; i < a.length; i++) worst = Math.max(worst, Math.abs((a[i] as number) - (b[i] as number)));
  return worst / scale;
};

/** Runs it with every kernel, on one thread and on several; all must give the same bytes. */
function runEverywhere(
  t: ExecutionContext,
  { program }: Made,
  image: Float32Array,
  size: [number, number],
  pools: readonly number[] = [0, 3],
) {
  const results = kernels.flatMap((kernel) =>
    pools.map((threads) => runProgram(program, image, ...size, kernel, threads)[0] ?? new Float32Array()),
  );
  const [first = new Float32Array()] = results;
  for (const [i, each] of results.entries()) t.is(apart(each, first, 1), 0, `run ${i}`);
  return first;
}

/** Levels by which a layer may differ from its definition: additions and 16-bit convolutions round more than once. */
type Exactness = 'equal' | 'a level';

function checkAll(
  t: ExecutionContext,
  build: (builder: NetworkBuilder) => string,
  sizes: readonly (readonly [number, number])[],
  exactness: Exactness = 'equal',
): void {
  for (const [width, height] of sizes) {
    const made = make(build, width, height);
    const image = imageOf(width, height);
    const found = runEverywhere(t, made, image, [width, height]);
    const wanted = byDefinition(made.standard, image, width, height);
    const levels = apart(found, wanted.values, made.scale);
    t.true(levels < (exactness === 'equal' ? 1e-3 : 1.001), `${width} x ${height}: ${levels} levels apart`);
    // The test is meaningful: the map is neither empty nor clipped everywhere.
    t.true(new Set(found).size > Math.min(10, found.length / 4), `${width} x ${height}`);
  }
}

const sizes = [
  [1, 1],
  [2, 3],
  [17, 5],
  [40, 33],
] as const;

const shapes: ConvShape[] = [
  { channels: 16, kernel: 1 },
  { channels: 16 },
  { channels: 32, stride: 2 },
  { channels: 48, relu: false },
  { channels: 64, dilation: 2 },
  { channels: 16, dilation: 4 },
  { channels: 32, dilation: 8 },
  { channels: 80, kernel: 1, stride: 2 },
  { channels: 32, dilation: 2, relu: false },
];

for (const from of [16, 32, 64, 80, 128]) {
  test(`convolutions of ${from} channels are sums of products, in every kernel`, (t) => {
    if (!present(t)) return;
    t.timeout(120_000);
    for (const shape of shapes) {
      checkAll(t, (b) => b.conv(b.conv('image', { channels: from }), shape), [
        sizes[(from + shape.channels) % 4] ?? [9, 9],
        [23, 9],
        [29, 22],
      ]);
    }
  });
}

test('a convolution of many channels, whose weights a kernel may transform part by part', (t) => {
  if (!present(t)) return;
  checkAll(t, (b) => b.conv(b.conv('image', { channels: 512 }), { channels: 288 }), [
    [5, 4],
    [20, 16],
  ]);
  checkAll(t, (b) => b.conv(b.conv('image', { channels: 768 }), { channels: 48 }), [
    [9, 7],
    [22, 17],
  ]);
  // An odd number of groups in several parts.
  checkAll(t, (b) => b.conv(b.conv('image', { channels: 256 }), { channels: 80 }), [[22, 17]]);
  // A map too large for parts to transform their own weights, which are more than fit at a time.
  const [width, height] = [52, 47];
  const large = make((b) => b.conv(b.conv('image', { channels: 1024 }), { channels: 112 }), width, height);
  runEverywhere(t, large, imageOf(width, height), [width, height], [3]);
});

test('a convolution may read the input of the network, at every size', (t) => {
  if (!present(t)) return;
  checkAll(t, (b) => b.conv('image', { channels: 16 }), sizes);
  checkAll(t, (b) => b.conv('image', { channels: 32, kernel: 3, stride: 2 }), sizes);
  checkAll(t, (b) => b.conv('image', { channels: 16, kernel: 1 }), sizes);
});

for (const [channels, kernel, stride] of [
  [1024, 3, 1],
  [1024, 3, 2],
  [64, 1, 1],
] as const) {
  for (const weight of [-128, 127]) {
    const title = `${channels} channels, ${kernel} x ${kernel}, stride ${stride}, weights of ${weight}`;
    test(`sums of the largest products do not saturate: ${title}`, (t) => {
      if (!present(t)) return;
      for (const [width, height] of [
        [7, 5],
        [24, 18],
      ] as const) {
        const program = constantSums(channels, kernel, stride, weight);
        const pad = (kernel - 1) / 2;
        const inside = (at: number, length: number) =>
          [...Array(kernel).keys()].filter((tap) => at + tap >= pad && at + tap < length + pad).length;
        const wanted: number[] = [];
        for (let y = 0; y < height; y += stride) {
          for (let x = 0; x < width; x += stride) {
            wanted.push(channels * 255 * weight * inside(x, width) * inside(y, height));
          }
        }
        for (const each of kernels) {
          const [found] = runProgram(program, imageOf(width, height), width, height, each, 2);
          t.deepEqual([...(found ?? [])], wanted, `${each}, ${width} x ${height}`);
        }
      }
    });
  }
}

test('pooling, also of odd sizes, and enlarging', (t) => {
  if (!present(t)) return;
  const stem = (b: NetworkBuilder) => b.conv('image', { channels: 32 });
  checkAll(t, (b) => b.conv(b.pool(stem(b), true), { channels: 16 }), sizes);
  checkAll(t, (b) => b.conv(b.pool(stem(b), false), { channels: 16 }), sizes.slice(1));
  for (const factor of [2, 4, 8, 16]) {
    checkAll(t, (b) => b.conv(b.resize(stem(b), factor), { channels: 16 }), sizes.slice(0, 3));
  }
  const many = (b: NetworkBuilder) => b.conv('image', { channels: 80 });
  checkAll(t, (b) => b.conv(b.resize(many(b), 2), { channels: 16 }), sizes.slice(1, 3));
});

test('concatenated maps: nested parts, a part in two of them and one used twice in one', (t) => {
  if (!present(t)) return;
  checkAll(
    t,
    (b) => {
      const stem = b.conv('image', { channels: 16 });
      const [one, two] = [b.conv(stem, { channels: 16 }), b.conv(stem, { channels: 32, dilation: 2 })];
      const inner = b.concat(one, two);
      const outer = b.concat(b.conv(inner, { channels: 16 }), inner, stem);
      return b.conv(b.concat(outer, one, one), { channels: 32 });
    },
    sizes,
  );
  checkAll(
    t,
    (b) => {
      const stem = b.conv('image', { channels: 64 });
      const small = b.conv(b.pool(stem, true), { channels: 64 });
      const joined = b.concat(b.resize(small, 2), stem);
      return b.conv(b.concat(joined, b.conv(joined, { channels: 64, kernel: 1 })), { channels: 16 });
    },
    [
      [2, 2],
      [16, 6],
      [40, 34],
    ],
  );
});

test('sums of two maps are rounded once', (t) => {
  if (!present(t)) return;
  checkAll(
    t,
    (b) => {
      const stem = b.conv('image', { channels: 32 });
      return b.add(b.conv(stem, { channels: 32 }), stem);
    },
    sizes,
    'a level',
  );
  checkAll(
    t,
    (b) => {
      const stem = b.conv('image', { channels: 32 });
      const sum = b.add(b.conv(stem, { channels: 32 }), stem);
      return b.conv(b.concat(sum, stem), { channels: 16 });
    },
    sizes,
    'a level',
  );
});

test('convolutions with a result finer than 8 bits: of an 8-bit map, of a float map, of both concatenated', (t) => {
  if (!present(t)) return;
  const eight = { channels: 32 } as const;
  const stem = (b: NetworkBuilder) => b.conv('image', eight);
  checkAll(t, (b) => b.conv(b.conv(stem(b), { channels: 16, wide: true }), eight), sizes, 'a level');
  const fine: readonly ConvShape[] = [
    { channels: 16, kernel: 1 },
    { channels: 16, dilation: 2 },
    { channels: 64 },
    { channels: 16, kernel: 1, idle: true },
  ];
  for (const shape of fine) {
    const wide = { ...shape, wide: true };
    checkAll(
      t,
      (b) => {
        const first = stem(b);
        const finer = b.conv(b.conv(first, eight), wide);
        return b.conv(b.conv(b.concat(finer, first), { ...wide, channels: 16 }), { channels: 16, kernel: 1 });
      },
      sizes,
      'a level',
    );
  }
});

test('nodes that the operator does not support keep the standard operators', (t) => {
  const standard = (build: (builder: NetworkBuilder) => string) => {
    const builder = new NetworkBuilder(3);
    const { file, table } = builder.build(build(builder), 8, 8);
    const [own, other] = (['int8-operators', 'int8'] as const).map((form) =>
      rewrite(file, undefined, form, table),
    );
    t.false(own?.operators);
    t.deepEqual([...(own?.pieces ?? [])], [...(other?.pieces ?? [])]);
  };
  standard((b) => b.conv('image', { channels: 10 }));
  standard((b) => b.conv(b.conv('image', { channels: 16, wide: true }), { channels: 16, wide: true }));
  const joined = (b: NetworkBuilder) => {
    const stem = b.conv('image', { channels: 16 });
    const fine = b.conv(stem, { channels: 16, wide: true });
    return b.conv(b.concat(fine, stem), { channels: 16, wide: true });
  };
  standard((b) => b.conv(joined(b), { channels: 16 }));
  standard((b) => b.resize(b.conv('image', { channels: 16 }), 3));
});

test("a channel finer than 8 bits, as a network's last one", (t) => {
  if (!present(t)) return;
  checkAll(t, (b) => b.logit(b.conv('image', { channels: 16 })), sizes);
});

/** A map of the full size that waits for its concatenation while narrow convolutions and a wide one run. */
function waitingSkip(b: NetworkBuilder): string {
  const stem = b.conv('image', { channels: 64 });
  let deep = b.pool(stem, true);
  for (const channels of [16, 16, 16, 16, 16, 16, 16, 16, 256, 256, 16, 16, 16, 16, 16, 16, 16, 16, 64]) {
    deep = b.conv(deep, { channels, kernel: 1 });
  }
  return b.conv(b.concat(b.resize(deep, 2), stem), { channels: 16, kernel: 1 });
}

test('a part that waits long for its concatenation is copied', (t) => {
  if (!present(t)) return;
  checkAll(t, waitingSkip, [[8, 12]]);
});

test('the room of a concatenation is not held while one of its parts waits for the others', (t) => {
  const side = 128;
  const { program } = make(waitingSkip, side, side);
  const stem = 64 * side * side;
  const wide = 256 * (side / 2) ** 2;
  // With the whole concatenation held, it would be two of the wide maps and twice the stem.
  t.true(planBytes(program, side, side) < 1.2 * (2 * wide + stem), `${planBytes(program, side, side)}`);
});

test("the operator agrees with ONNX Runtime's own operators within a level", async (t) => {
  if (!present(t)) return;
  t.timeout(120_000);
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-integer-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const networks: Record<string, (b: NetworkBuilder) => string> = {
    convolutions: (b) => b.conv(b.conv('image', { channels: 64 }), { channels: 32, dilation: 2 }),
    joined: (b) => {
      const stem = b.conv('image', { channels: 32 });
      const deep = b.conv(b.pool(stem, true), { channels: 32 });
      return b.concat(b.resize(deep, 2), stem);
    },
    sums: (b) => {
      const stem = b.conv('image', { channels: 32 });
      return b.add(b.conv(stem, { channels: 32 }), stem);
    },
    wide: (b) =>
      b.conv(b.conv(b.conv('image', { channels: 16 }), { channels: 16, wide: true }), { channels: 16 }),
    fine: (b) => b.logit(b.conv('image', { channels: 16 })),
  };
  for (const [name, build] of Object.entries(networks)) {
    const [width, height] = [22, 18];
    const made = make(build, width, height);
    const image = imageOf(width, height);
    const file = path.join(folder, `${name}.onnx`);
    await writeFile(file, made.standard);
    const wanted = await runNetwork(file, image, 1, { height, width });
    const found = runEverywhere(t, made, image, [width, height]);
    const levels = apart(found, wanted, made.scale);
    const differ = found.filter((each, at) => Math.abs(each - (wanted[at] ?? 0)) > made.scale / 2).length;
    t.log(`${name}: at most ${levels.toFixed(3)} levels apart, ${differ} of ${found.length} differ`);
    // Float maps need 16-bit weights here.
    t.true(differ <= (name === 'wide' ? found.length / 50 : 0), name);
    t.true(levels < 1.001, `${name}: ${levels} levels apart`);
  }
});

/** A network with every kind of operation. */
const everything = (b: NetworkBuilder): string => {
  const stem = b.conv('image', { channels: 16 });
  const deep = b.conv(b.pool(stem, true), { channels: 32, dilation: 2 });
  const sum = b.add(b.conv(deep, { channels: 32 }), deep);
  const joined = b.concat(b.resize(sum, 2), stem);
  const fine = b.conv(b.concat(b.conv(joined, { channels: 64, wide: true }), joined), {
    channels: 16,
    wide: true,
  });
  return b.logit(b.conv(fine, { channels: 32, stride: 2 }));
};

/** A convolution of a map full of 255 with equal weights, as floats. */
function constantSums(channels: number, kernel: number, stride: number, weight: number): Program {
  const writer = new ProgramWriter(3);
  const one = { channel: 0, dilation: 1, relu: false, panels: 1 } as const;
  const full = writer.conv(
    writer.input({ type: 'quantised', channels: 4, zero: 0 }),
    { type: 'quantised', channels, zero: 0 },
    {
      ...one,
      channels: 4,
      kernel: [1, 1],
      stride: 1,
      pads: [0, 0, 0, 0],
      weights: pack([new Int8Array(4 * channels)], channels, 4, { kernel: [1, 1], dilation: 1 }),
      bias: new Int32Array(channels).fill(255),
      scales: new Float32Array(channels).fill(1),
    },
  );
  const size = [kernel, kernel] as const;
  const weights = new Int8Array(16 * channels * kernel * kernel).fill(weight);
  const pad = (kernel - 1) / 2;
  const sums = writer.conv(
    full,
    { type: 'floats', channels: 16, zero: 0 },
    {
      ...one,
      channels,
      kernel: size,
      stride,
      pads: [pad, pad, pad, pad],
      weights: pack([weights], 16, channels, { kernel: size, dilation: 1 }),
      bias: new Int32Array(16),
      scales: new Float32Array(16).fill(1),
    },
  );
  writer.planes(sums, 1);
  return written(writer);
}

/** What the writer has written. */
function written(writer: ProgramWriter): Program {
  const buffer = (pool: { bytes: () => Uint8Array }) => Uint8Array.from(pool.bytes()).buffer;
  return {
    code: writer.code(),
    floats: new Float32Array(buffer(writer.floats)),
    ints: new Int32Array(buffer(writer.ints)),
    weights: new Int8Array(buffer(writer.weights)),
  };
}

/** Two convolutions of one tap each, and the place of the second one's weights. */
function twoConvolutions(): { program: Program; secondWeights: number } {
  const writer = new ProgramWriter(3);
  const quantised = (channels: number) => ({ type: 'quantised', channels, zero: 0 }) as const;
  const conv = (input: number, channels: number) =>
    writer.conv(input, quantised(16), {
      channel: 0,
      channels,
      kernel: [1, 1],
      stride: 1,
      dilation: 1,
      pads: [0, 0, 0, 0],
      relu: false,
      weights: new Int8Array(1024),
      panels: 1,
      bias: new Int32Array(16),
      scales: new Float32Array(16).fill(1),
    });
  writer.sumOutput(conv(conv(writer.input(quantised(4), 1), 4), 16), 1, 0);
  const program = written(writer);
  // Before the places of its bias and scales and the five numbers of the output.
  return { program, secondWeights: program.code.length - 8 };
}

test('a program is refused whose size would not be bounded by its file, and a map that is too long', (t) => {
  if (!present(t)) return;
  const { program, secondWeights } = twoConvolutions();
  const [kernel = ''] = kernels;
  const run = (code: BigInt64Array, width: number, weights = program.weights) => {
    const input = new Float32Array(width > 0 && width < 100 ? 3 * width : 0);
    return runProgram({ ...program, code, weights }, input, width, 1, kernel, 0);
  };
  t.deepEqual(run(program.code, 2), [new Float32Array(2)]);
  t.is(program.code[secondWeights], 1024n);
  const shared = program.code.with(secondWeights, 0n);
  t.throws(() => run(shared, 2, program.weights.slice(0, 1024)), { message: /malformed: the weights/ });
  t.throws(() => run(program.code.with(2, 4097n), 2), { message: /malformed: the number of values/ });
  for (const width of [0, -1, 2 ** 16 + 1, 2 ** 31 - 1]) {
    t.throws(() => run(program.code, width), { message: /does not fit an input of/ }, String(width));
  }
});

test('a malformed program is an error or runs inside its memory, and never crashes', (t) => {
  if (!present(t)) return;
  t.timeout(240_000);
  const [width, height] = [8, 6];
  const { program } = make(everything, width, height);
  const image = imageOf(width, height);
  const next = random(11);
  const pick = (count: number) => Math.floor(next() * count);
  const odd = [
    -1n,
    0n,
    1n,
    2n,
    3n,
    4n,
    15n,
    16n,
    17n,
    63n,
    64n,
    65n,
    255n,
    256n,
    511n,
    4096n,
    65536n,
    2n ** 31n - 1n,
    2n ** 40n,
  ];
  const { code, floats, ints, weights } = program;
  function* damaged() {
    yield* damagedCodes(code, { rounds: 4000, odd, pick });
    for (const part of [0, 1, 2, 3]) {
      yield { weights: weights.slice(0, (weights.length * part) / 4) };
      yield { ints: ints.slice(0, (ints.length * part) / 4) };
      yield { floats: floats.slice(0, (floats.length * part) / 4) };
    }
    yield { weights: weights.slice(0, -1) };
    yield { floats: new Float32Array(floats.length).fill(Number.NaN) };
    yield { floats: new Float32Array(floats.length).fill(Number.POSITIVE_INFINITY) };
    yield { floats: new Float32Array(floats.length) };
    yield { ints: new Int32Array(ints.length).fill(2 ** 31 - 1) };
  }
  const refused = countRefused(
    t,
    damaged(),
    (changed) =>
      runProgram({ ...program, ...changed }, image, width, height, kernels[pick(kernels.length)] ?? '', 0),
    /low-precision part of the network|too large for this test|size of the input|allocation/i,
  );
  t.true(refused > 1000, `${refused} refused`);
});
