import test, { type ExecutionContext } from 'ava';
import { packSixteen, padded, wholeGroups } from '../../src/compiler/lowPrecision/pack.ts';
import { transposed } from '../../src/compiler/matrix.ts';
import { convolutionByDefinition, outputSize } from '../fixtures/convolutionOracle.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { random } from '../fixtures/random.ts';
import { type Convolution, lowPrecisionAddon } from './lowPrecisionAddon.ts';

const { runConvolution, programKernels } = lowPrecisionAddon;
const kernels = programKernels(true);

function present(t: ExecutionContext): boolean {
  if (kernels.length > 0) return true;
  sayLeftOut(t, 'this processor has no dot products of bf16');
  return false;
}

const next = random(29);
const numbers = (count: number, size = 1) =>
  Float32Array.from({ length: count }, () => (next() * 2 - 1) * size);

type Shape = Omit<Convolution, 'bias' | 'weights'>;
const plain: Shape = {
  ...{ channels: 5, outputs: 7, kernel: [3, 3], stride: 1, dilation: 1 },
  ...{ pads: [1, 1, 1, 1], relu: false },
};

/** As preparation does: the values of a tap side by side, in whole groups and pairs. */
function packed(shape: Shape, values: Float32Array, bias: Float32Array): Convolution {
  const { channels, outputs, kernel } = shape;
  const [taps, made] = [kernel[0] * kernel[1], wholeGroups(outputs)];
  const [inputs, read] = [channels * taps, Math.ceil((channels * taps) / 2) * 2];
  const rows = new Float32Array(values.length);
  for (let at = 0; at < values.length; at += inputs)
    rows.set(
      transposed({ rows: channels, columns: taps, values: values.subarray(at, at + inputs) }).values,
      at,
    );
  const all = padded(rows, [outputs, inputs], [made, read]);
  const weights = packSixteen(all, made, read, { kernel: [1, 1], dilation: 1 }, 'bf16');
  return { ...shape, weights, bias: padded(bias, [1, outputs], [1, made]) };
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
  const wanted = convolutionByDefinition(shape, { height, width, input, weights, bias, offsets, masks });
  const convolution = packed(shape, weights, bias);
  for (const kernel of kernels) {
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
    t.true(off / found.length < 1e-4, `${kernel}: ${off / found.length} on average`);
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
  const convolution = packed(shape, Float32Array.of(1, 1), Float32Array.of(2));
  const offsets = Float32Array.from([Number.NaN, 1e30, -1e30, 0, 0, 0, 0, 1e9]);
  for (const kernel of kernels)
    t.deepEqual(
      [...runConvolution(convolution, 1, 4, numbers(8), offsets, new Float32Array(4).fill(1), kernel, 0)],
      [2, 2, 2, 2],
    );
});

test('a convolution that does not fit together is refused', (t) => {
  if (!present(t)) return;
  const good = packed(plain, numbers(315), numbers(7));
  const refused = (changes: Partial<Convolution>, message: RegExp) =>
    t.throws(
      () =>
        runConvolution({ ...good, ...changes }, 4, 4, numbers(80), undefined, undefined, kernels[0] ?? '', 0),
      { message },
    );
  for (const channels of [0, -1, 2 ** 40]) refused({ channels }, /number of channels/);
  for (const outputs of [0, 2 ** 40]) refused({ outputs }, /number of channels/);
  for (const side of [0, -3, 2 ** 40]) refused({ kernel: [side, 3] }, /its kernel/);
  refused({ kernel: [1024, 1024] }, /its kernel/);
  refused({ stride: 0 }, /its kernel/);
  refused({ dilation: 2 ** 20 }, /its kernel/);
  refused({ pads: [1, 1, -1, 1] }, /its kernel/);
  refused({ channels: 50 }, /weights or biases/);
  refused({ outputs: 17 }, /weights or biases/);
  refused({ bias: good.bias.slice(1) }, /weights or biases/);
});
