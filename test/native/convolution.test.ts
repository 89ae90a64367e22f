import test, { type ExecutionContext } from 'ava';
import { packMatrix } from '../../src/compiler/lowPrecision/pack.ts';
import { transposed } from '../../src/compiler/matrix.ts';
import { convolutionByDefinition, outputSize } from '../fixtures/convolutionOracle.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import type { Format } from '../fixtures/productOracle.ts';
import { random } from '../fixtures/random.ts';
import { type Convolution, lowPrecisionAddon } from './lowPrecisionAddon.ts';

const { runConvolution, programKernels } = lowPrecisionAddon;
/** The kernels of this processor with what they multiply. */
const kernels = (['bf16', 'int8'] as const).flatMap((format) =>
  programKernels(format === 'bf16').map((kernel) => ({ format, kernel })),
);
const [first = { format: 'int8', kernel: '' }] = kernels;

function present(t: ExecutionContext): boolean {
  if (kernels.length > 0) return true;
  sayLeftOut(t, 'this processor has no kernels of 8 bits or bf16');
  return false;
}

const next = random(29);
const numbers = (count: number, size = 1) =>
  Float32Array.from({ length: count }, () => (next() * 2 - 1) * size);

type Shape = Omit<Convolution, 'bf16' | 'constants' | 'weights'>;
const plain: Shape = {
  ...{ channels: 5, outputs: 7, kernel: [3, 3], stride: 1, dilation: 1 },
  ...{ pads: [1, 1, 1, 1], relu: false },
};

/** As preparation does: the values of a tap side by side. */
function packed(shape: Shape, values: Float32Array, bias: Float32Array, format: Format): Convolution {
  const { channels, outputs, kernel } = shape;
  const taps = kernel[0] * kernel[1];
  const inputs = channels * taps;
  const rows = new Float32Array(values.length);
  for (let at = 0; at < values.length; at += inputs)
    rows.set(
      transposed({ rows: channels, columns: taps, values: values.subarray(at, at + inputs) }).values,
      at,
    );
  return { ...shape, bf16: format === 'bf16', ...packMatrix(rows, [outputs, inputs], bias, format) };
}

function compare(
  t: ExecutionContext,
  changes: Partial<Shape>,
  height: number,
  width: number,
  offset?: number,
) {
  const shape = { ...plain, ...changes };
  const taps = shape.kernel[0] * shape.kernel[1];
  const [rows, columns] = outputSize(shape, height, width);
  const input = numbers(shape.channels * height * width);
  const weights = numbers(shape.outputs * shape.channels * taps, (shape.channels * taps) ** -0.5);
  const bias = numbers(shape.outputs, 0.3);
  const moved = offset !== undefined;
  const offsets = moved ? numbers(2 * taps * rows * columns, offset) : undefined;
  const masks = moved ? numbers(taps * rows * columns) : undefined;
  const planes = { height, width, input, weights, bias, offsets, masks };
  const wantedOf = {
    bf16: convolutionByDefinition(shape, planes, 'bf16'),
    int8: convolutionByDefinition(shape, planes, 'int8'),
  };
  for (const { kernel, format } of kernels) {
    const wanted = wantedOf[format];
    const convolution = packed(shape, weights, bias, format);
    const run = (threads: number) =>
      runConvolution(convolution, height, width, input, offsets, masks, kernel, threads);
    const found = run(0);
    t.deepEqual(run(3), found, 'threads change nothing');
    t.is(found.length, wanted.values.length);
    const wrong = found.findIndex(
      (value, i) => !(Math.abs(value - (wanted.values[i] as number)) <= (wanted.bounds[i] as number)),
    );
    t.is(
      wrong,
      -1,
      `${kernel}, ${JSON.stringify(changes)}, ${offset}: ${found[wrong]}, not ${wanted.values[wrong]}`,
    );
    const off = found.reduce((sum, value, i) => sum + Math.abs(value - (wanted.values[i] as number)), 0);
    t.true(
      off / found.length < (format === 'bf16' ? 1e-4 : 1e-3),
      `${kernel}: ${off / found.length} on average`,
    );
  }
}

test('convolutions of every shape agree with their definition, with every kernel', (t) => {
  if (!present(t)) return;
  t.timeout(240_000);
  compare(t, {}, 9, 11);
  compare(t, { relu: true, outputs: 16, channels: 32 }, 6, 5);
  compare(t, { kernel: [1, 1], pads: [0, 0, 0, 0], channels: 40, outputs: 33 }, 13, 17);
  compare(t, { kernel: [4, 4], stride: 4, pads: [0, 0, 0, 0], channels: 3 }, 16, 20);
  compare(t, { kernel: [7, 5], stride: 2, dilation: 2, pads: [3, 0, 2, 4] }, 23, 19);
  compare(t, { channels: 17, outputs: 1 }, 20, 21);
});

test('deformable convolutions read between pixels, and zeros beyond the border', (t) => {
  if (!present(t)) return;
  t.timeout(240_000);
  compare(t, {}, 9, 11, 0.7);
  compare(t, { kernel: [1, 1], pads: [0, 0, 0, 0], outputs: 18 }, 8, 7, 3);
  compare(t, { kernel: [7, 7], pads: [3, 3, 3, 3], channels: 16, relu: true }, 10, 12, 30);
  compare(t, { stride: 2, dilation: 2, pads: [2, 2, 2, 2] }, 12, 9, 1);
});

test('offsets that are not finite or are huge read zeros', (t) => {
  if (!present(t)) return;
  const shape: Shape = { ...plain, kernel: [1, 1], pads: [0, 0, 0, 0], channels: 2, outputs: 1 };
  const offsets = Float32Array.from([Number.NaN, 1e30, -1e30, 0, 0, 0, 0, 1e9]);
  for (const { kernel, format } of kernels) {
    const convolution = packed(shape, Float32Array.of(1, 1), Float32Array.of(2), format);
    t.deepEqual(
      [...runConvolution(convolution, 1, 4, numbers(8), offsets, new Float32Array(4).fill(1), kernel, 0)],
      [2, 2, 2, 2],
    );
  }
});

test('a convolution that does not fit together is refused', (t) => {
  if (!present(t)) return;
  const good = packed(plain, numbers(315), numbers(7), first.format);
  const refused = (changes: Partial<Convolution>, message: RegExp) =>
    t.throws(
      () => runConvolution({ ...good, ...changes }, 4, 4, numbers(80), undefined, undefined, first.kernel, 0),
      { message },
    );
  for (const channels of [0, -1, 2 ** 40]) refused({ channels }, /number of channels/);
  for (const outputs of [0, 2 ** 40]) refused({ outputs }, /number of channels/);
  for (const side of [0, -3, 2 ** 40]) refused({ kernel: [side, 3] }, /its kernel/);
  refused({ kernel: [1024, 1024] }, /number of inputs/);
  refused({ stride: 0 }, /its kernel/);
  refused({ dilation: 2 ** 20 }, /its kernel/);
  refused({ pads: [1, 1, -1, 1] }, /its kernel/);
  refused({ channels: 50 }, /fewer weights/);
  refused({ outputs: 17 }, /fewer weights/);
  refused({ constants: good.constants.slice(1) }, /fewer weights/);
  // Not by fewer channels: packed rows of 8 bits are filled up to the same length.
  refused({ weights: Int8Array.of(...good.weights, 0) }, /number of weights/);
  refused({ constants: Float32Array.of(...good.constants, 0) }, /number of weights/);
});
