import test, { type ExecutionContext } from 'ava';
import { packMatrix } from '../../src/compiler/lowPrecision/pack.ts';
import { toBf16 } from '../fixtures/bf16Oracle.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import {
  attentionByDefinition,
  type Bounded,
  erf,
  type Format,
  productByDefinition,
  type Sides,
} from '../fixtures/productOracle.ts';
import { random } from '../fixtures/random.ts';
import { lowPrecisionAddon, type MatMul } from './lowPrecisionAddon.ts';

const { runMatMul, runAttention, programKernels } = lowPrecisionAddon;
const kernels = programKernels(true);
/** The kernels of this processor with what they multiply. */
const products = (['bf16', 'int8'] as const).flatMap((format) =>
  programKernels(format === 'bf16').map((kernel) => ({ format, kernel })),
);

function present(t: ExecutionContext): boolean {
  if (kernels.length > 0) return true;
  sayLeftOut(t, 'this processor has no dot products of bf16');
  return false;
}

const next = random(17);
const numbers = (count: number, size = 1) =>
  Float32Array.from({ length: count }, () => (next() * 2 - 1) * size);

interface Matrix {
  readonly columns: number;
  /** [inputs, columns] */
  readonly values: Float32Array;
  readonly bias: Float32Array;
}

function matrixOf(inputs: number, columns: number): Matrix {
  return {
    columns,
    values: numbers(inputs * columns, 2 / Math.sqrt(inputs)),
    bias: numbers(columns, 0.3),
  };
}

/** As preparation does. */
function matMulOf(
  inputs: number,
  matrices: readonly Matrix[],
  gelu: boolean,
  format: Format = 'bf16',
): MatMul {
  const weights: number[] = [];
  const constants: number[] = [];
  for (const { columns, values, bias: own } of matrices) {
    const turned = new Float32Array(columns * inputs);
    for (let k = 0; k < inputs; k++)
      for (let column = 0; column < columns; column++)
        turned[column * inputs + k] = values[k * columns + column] as number;
    const packed = packMatrix(turned, [columns, inputs], own, format);
    weights.push(...packed.weights);
    constants.push(...packed.constants);
  }
  return {
    bf16: format === 'bf16',
    inputs,
    columns: matrices.map(({ columns }) => columns),
    gelu,
    constants: Float32Array.from(constants),
    weights: Int8Array.from(weights),
  };
}

function compare(t: ExecutionContext, found: Float32Array | undefined, wanted: Bounded, what: string): void {
  t.is(found?.length, wanted.values.length, what);
  const wrong = found?.findIndex(
    (value, i) => !(Math.abs(value - (wanted.values[i] as number)) <= (wanted.bounds[i] as number)),
  );
  if (wrong !== -1) {
    const at = wrong ?? 0;
    t.fail(`${what}: value ${at} is ${found?.[at]}, not ${wanted.values[at]} within ${wanted.bounds[at]}`);
  }
}

function checkProduct(
  t: ExecutionContext,
  rows: number,
  inputs: number,
  columns: readonly number[],
  gelu: boolean,
) {
  const matrices = columns.map((each) => matrixOf(inputs, each));
  const given = numbers(rows * inputs);
  for (const { kernel, format } of products) {
    const matmul = matMulOf(inputs, matrices, gelu, format);
    const alone = runMatMul(matmul, given, kernel, 0, false);
    t.deepEqual(runMatMul(matmul, given, kernel, 3, false), alone, 'threads change nothing');
    for (const [i, { values, bias }] of matrices.entries()) {
      const wanted = productByDefinition(given, values, bias, inputs, gelu, format);
      compare(t, alone[i], wanted, `${kernel}, ${rows} rows of ${inputs}, ${columns}, matrix ${i}`);
    }
  }
}

test('matmuls of every shape, with every kernel', (t) => {
  t.timeout(240_000);
  // One row; numbers of inputs that are no whole chunks, pairs or groups; more rows than a block, and than all blocks.
  for (const [rows, inputs, columns] of [
    [1, 96, [96]],
    [1, 33, [16]],
    [3, 1, [1]],
    [5, 31, [17]],
    [23, 32, [48, 16, 80]],
    [49, 65, [20, 32]],
    [100, 40, [64]],
    [1600, 34, [16]],
  ] as const)
    for (const gelu of [false, true]) checkProduct(t, rows, inputs, columns, gelu);
});

test('inputs and weights are rounded to the nearest bf16, sums and biases are not', (t) => {
  if (!present(t)) return;
  const values = new Float32Array(32 * 16);
  values[0] = 1 + 2 ** -8 + 2 ** -12; // rounded up
  values[16] = 1 + 2 ** -8; // a half: to the even one
  const matmul = matMulOf(32, [{ columns: 16, values, bias: new Float32Array(16).fill(2 ** -20) }], false);
  const row = new Float32Array(32);
  row[0] = 1;
  row[1] = -(1 + 2 ** -7);
  t.is(toBf16(values[0] as number), 1 + 2 ** -7);
  for (const kernel of kernels) {
    t.is(runMatMul(matmul, row, kernel, 0, false)[0]?.[0], 2 ** -20, kernel);
  }
});

test('what is not a number, or infinite, is not one in the product either', (t) => {
  const matrix = matrixOf(40, 16);
  for (const { kernel, format } of products)
    for (const odd of [Number.NaN, -Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const row = numbers(40);
      row[7] = odd;
      const [found] = runMatMul(matMulOf(40, [matrix], false, format), row, kernel, 0, false);
      t.false(found?.some(Number.isFinite), `${kernel}, ${odd}`);
    }
});

test('GELU is right from far below 0 to far above, and of values that are not finite', (t) => {
  if (!present(t)) return;
  const columns = 16;
  const values = new Float32Array(32 * columns);
  const bias = Float32Array.from([-90, -40, -10, -6, -4, -3, -1, -1e-3, 0, 1e-20, 1e-3, 0.5, 2, 5, 40, 1e30]);
  const matmul = matMulOf(32, [{ columns, values, bias }], true);
  for (const kernel of kernels) {
    const [found] = runMatMul(matmul, new Float32Array(32), kernel, 0, false);
    for (const [i, x] of bias.entries()) {
      const wanted = (x * (1 + erf(x / Math.SQRT2))) / 2;
      t.true(
        Math.abs((found?.[i] ?? Number.NaN) - wanted) <= 4e-7 * (1 + Math.abs(x)),
        `${x}: ${found?.[i]}`,
      );
    }
  }
  t.true(Math.abs(erf(0.5) - 0.5204998778130465) < 1e-12);
  t.true(Math.abs(erf(3.5) - 0.9999992569016276) < 1e-12);
  const odd = matMulOf(32, [{ columns, values, bias: new Float32Array(16).fill(Number.NaN) }], true);
  t.true(Number.isNaN(runMatMul(odd, new Float32Array(32), kernels[0] ?? '', 0, false)[0]?.[0]));
});

test('a matmul that does not fit together is refused, and a stopped run ends', (t) => {
  if (!present(t)) return;
  const [kernel = ''] = kernels;
  const matmul = matMulOf(40, [matrixOf(40, 20)], false);
  const rows = numbers(3 * 40);
  const refused = (changes: Partial<MatMul>, message: RegExp) =>
    t.throws(() => runMatMul({ ...matmul, ...changes }, rows, kernel, 0, false), { message });
  refused({ inputs: 0 }, /number of inputs/);
  refused({ inputs: -1 }, /number of inputs/);
  refused({ inputs: 2 ** 40 }, /number of inputs/);
  refused({ inputs: 80 }, /fewer weights/);
  refused({ inputs: 30 }, /other weights/);
  refused({ columns: [] }, /other weights/);
  refused({ columns: [0] }, /number of columns/);
  refused({ columns: [2 ** 40] }, /number of columns/);
  refused({ columns: [20, 20] }, /fewer weights/);
  refused({ columns: [16] }, /other weights/);
  refused({ constants: matmul.constants.slice(1) }, /fewer weights/);
  refused({ weights: matmul.weights.slice(1) }, /fewer weights/);
  refused({ weights: new Int8Array(0) }, /fewer weights/);
  t.throws(() => runMatMul(matmul, rows, kernel, 0, true), undefined, 'stopped before it begins');
});

function checkAttention(t: ExecutionContext, sides: Sides, scale: number, size = 1): void {
  const [batch, queries, keys, heads, channels, valueChannels] = sides;
  const q = numbers(batch * queries * heads * channels, size);
  const k = numbers(batch * keys * heads * channels);
  const v = numbers(batch * keys * heads * valueChannels);
  const wanted = attentionByDefinition(sides, scale, q, k, v);
  for (const kernel of kernels) {
    const alone = runAttention(sides, scale, q, k, v, kernel, 0);
    t.deepEqual(runAttention(sides, scale, q, k, v, kernel, 3), alone, 'threads change nothing');
    const what = `${kernel}, ${sides}, scale ${scale}`;
    compare(t, alone, wanted, what);
    // The bound allows for roundings that are rare.
    const off = alone.reduce((sum, value, i) => sum + Math.abs(value - (wanted.values[i] as number)), 0);
    t.true(off / alone.length < 1e-5, `${what}: ${off / alone.length} on average`);
  }
}

test('attention of every shape, with every kernel', (t) => {
  if (!present(t)) return;
  t.timeout(240_000);
  checkAttention(t, [1, 1, 1, 1, 1, 1], 1);
  checkAttention(t, [2, 16, 64, 2, 96, 96], 96 ** -0.5);
  checkAttention(t, [3, 49, 49, 3, 32, 32], 32 ** -0.5);
  checkAttention(t, [1, 130, 61, 2, 20, 33], 0.7);
  checkAttention(t, [7, 5, 18, 4, 17, 16], 0.3);
  // Scores far apart: one key takes all of the weight.
  checkAttention(t, [1, 50, 33, 1, 64, 48], 8, 20);
});

test('equal scores give the mean of the values exactly', (t) => {
  if (!present(t)) return;
  const sides: Sides = [2, 3, 40, 2, 8, 24];
  const v = numbers(2 * 40 * 2 * 24);
  const [q, k] = [new Float32Array(2 * 3 * 2 * 8), numbers(2 * 40 * 2 * 8)];
  const wanted = attentionByDefinition(sides, 1, q, k, v);
  for (const kernel of kernels) compare(t, runAttention(sides, 1, q, k, v, kernel, 0), wanted, kernel);
});

test('an attention of no computable shape or scale is refused', (t) => {
  if (!present(t)) return;
  const none = new Float32Array(0);
  for (let at = 1; at < 6; at++)
    for (const side of [0, -1, 2 ** 21]) {
      const sides = [1, 1, 1, 1, 1, 1].map((each, i) => (i === at ? side : each));
      t.throws(() => runAttention(sides as unknown as Sides, 1, none, none, none, kernels[0] ?? '', 0), {
        message: /shape that is not computed/,
      });
    }
  const one = new Float32Array(1);
  for (const scale of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
    t.throws(() => runAttention([1, 1, 1, 1, 1, 1], scale, one, one, one, kernels[0] ?? '', 0), {
      message: /scale that is not computed/,
    });
});
