import { create } from '@bufbuild/protobuf';
import { buildNode, floatValue, type Setting } from '../onnx/build.ts';
import { floatTensor, int64Tensor } from '../onnx/graph.ts';
import {
  GraphProtoSchema,
  type ModelProto,
  ModelProtoSchema,
  type NodeProto,
  OperatorSetIdProtoSchema,
  type TensorProto,
} from '../onnx/onnx_pb.ts';
import type { Weights } from './ortFile.ts';

/** Sides that need no padding: 4 pixels a token, windows of 8 x 8 and, after two halvings, of 14 x 14 tokens. */
const ENCODER_STEP = 224;

const TRUNK = 'model.image_encoder.trunk.';
const FOLDED = '/image_encoder/trunk/';
const NECK = 'model.image_encoder.neck.convs.';
const SKIPS = 'model.sam_mask_decoder.conv_s';
const MICROSOFT = 'com.microsoft';

const BLOCKS = 12;
/** Blocks that double the channels and halve the sides, with the channels after them. */
const WIDENING: Readonly<Record<number, number>> = { 1: 192, 3: 384, 10: 768 };
/** Blocks whose tokens see the whole image; in the others they see their window. */
const GLOBAL: readonly number[] = [5, 7, 9];
/** The first block with windows of 14 x 14 tokens. */
const REGROUPED = 4;
const FIRST_WINDOW = 8;
const SECOND_WINDOW = 14;
const EPSILON = { float: 1e-6 };

/** [rows, columns] of a matrix, row after row. */
interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float32Array;
}

/** Columns `from` to `to` of a matrix. */
function columnsOf({ rows, columns, values }: Matrix, from: number, to: number): Matrix {
  const part = new Float32Array(rows * (to - from));
  for (let row = 0; row < rows; row++)
    part.set(values.subarray(row * columns + from, row * columns + to), row * (to - from));
  return { rows, columns: to - from, values: part };
}

function transposed({ rows, columns, values }: Matrix): Matrix {
  const to = new Float32Array(values.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      to[column * rows + row] = values[row * columns + column] ?? 0;
  return { rows: columns, columns: rows, values: to };
}

/** a b, with sums in double precision. */
function product(a: Matrix, b: Matrix): Matrix {
  const values = new Float32Array(a.rows * b.columns);
  for (let row = 0; row < a.rows; row++)
    for (let column = 0; column < b.columns; column++) {
      let sum = 0;
      for (let k = 0; k < a.columns; k++)
        sum += (a.values[row * a.columns + k] ?? 0) * (b.values[k * b.columns + column] ?? 0);
      values[row * b.columns + column] = sum;
    }
  return { rows: a.rows, columns: b.columns, values };
}

const plus = (a: Float32Array, b: Float32Array): Float32Array => a.map((value, at) => value + (b[at] ?? 0));

/**
 * The position embedding for a side of `to` tokens. The network adds a pattern that repeats in every window of 8 x 8 to a
 * smooth map of the whole image; the pattern is kept, the smooth map is interpolated linearly.
 */
export function resizePositions({ dims, values }: Weights, to: number): Float32Array {
  const [, channels = 0, from = 0] = dims;
  const window = FIRST_WINDOW;
  const windows = from / window;
  const result = new Float32Array(channels * to * to);
  const taps = Array.from({ length: to }, (_, at) => {
    const centre = ((at + 0.5) * from) / to - 0.5;
    const low = Math.min(Math.max(Math.floor(centre), 0), from - 2);
    return { low, share: Math.min(Math.max(centre - low, 0), 1) };
  });
  for (let channel = 0; channel < channels; channel++) {
    const plane = values.subarray(channel * from * from, (channel + 1) * from * from);
    const pattern = new Float64Array(window * window);
    for (let y = 0; y < from; y++)
      for (let x = 0; x < from; x++) {
        const at = (y % window) * window + (x % window);
        pattern[at] = (pattern[at] ?? 0) + (plane[y * from + x] ?? 0) / (windows * windows);
      }
    const ofWindow = (y: number, x: number) => pattern[(y % window) * window + (x % window)] ?? 0;
    const smooth = (y: number, x: number) => (plane[y * from + x] ?? 0) - ofWindow(y, x);
    for (const [y, row] of taps.entries())
      for (const [x, column] of taps.entries()) {
        const line = (at: number) =>
          smooth(at, column.low) * (1 - column.share) + smooth(at, column.low + 1) * column.share;
        result[(channel * to + y) * to + x] =
          line(row.low) * (1 - row.share) + line(row.low + 1) * row.share + ofWindow(y, x);
      }
  }
  return result;
}

/** A graph under construction: operators return the names of their outputs. */
class Graph {
  readonly nodes: NodeProto[] = [];
  readonly initializers: TensorProto[] = [];
  readonly #weights: ReadonlyMap<string, Weights>;

  constructor(weights: ReadonlyMap<string, Weights>) {
    this.#weights = weights;
  }

  /** The published weights of this name, which must have this shape. */
  weights(name: string, ...dims: readonly number[]): Float32Array {
    const found = this.#weights.get(name);
    if (found?.dims.join() !== dims.join())
      throw new RangeError(`it has no weights ${name} of ${dims.join(' x ')}`);
    return found.values;
  }

  matrix(name: string, rows: number, columns: number): Matrix {
    return { rows, columns, values: this.weights(name, rows, columns) };
  }

  /** A convolution of 1 x 1 as a matrix [in, out]. */
  pointwise(name: string, from: number, to: number): Matrix {
    return transposed({ rows: to, columns: from, values: this.weights(`${name}.weight`, to, from, 1, 1) });
  }

  constant(values: Float32Array, ...dims: readonly number[]): string {
    const name = `constant_${this.initializers.length}`;
    this.initializers.push(floatTensor(name, dims, values));
    return name;
  }

  op(
    opType: string,
    inputs: readonly string[],
    settings: Readonly<Record<string, Setting>> = {},
    domain = '',
    output = `value_${this.nodes.length}`,
  ): string {
    const node = buildNode(opType, inputs, output, settings);
    node.domain = domain;
    this.nodes.push(node);
    return output;
  }

  reshape(value: string, dims: readonly number[], output?: string): string {
    const shape = `shape_${this.initializers.length}`;
    this.initializers.push(int64Tensor(shape, dims.map(BigInt)));
    return this.op('Reshape', [value, shape], {}, '', output);
  }

  transpose(value: string, perm: readonly number[]): string {
    return this.op('Transpose', [value], { perm });
  }

  /** value [tokens, rows] · matrix. */
  times(value: string, { rows, columns, values }: Matrix): string {
    return this.op('MatMul', [value, this.constant(values, rows, columns)]);
  }

  /** value · matrix + bias. */
  linear(value: string, { rows, columns, values }: Matrix, bias: Float32Array): string {
    return this.op('Gemm', [value, this.constant(values, rows, columns), this.constant(bias, columns)]);
  }

  /** The largest of every four neighbouring tokens. */
  largestOfFour(value: string, tokens: number, channels: number): string {
    const fours = this.reshape(value, [tokens / 4, 4, channels]);
    return this.op('ReduceMax', [fours], { axes: [1], keepdims: 0 });
  }
}

/** What a branch of a block adds to the tokens, without its bias. */
interface Branch {
  readonly value: string;
  readonly bias: string;
}

/**
 * SAM 2's Hiera tiny encoder for images of another size than it was published for, from its published weights.
 *
 * It computes the published network's function at `side`, a multiple of 224, with fewer steps: tokens stay in the order of
 * their windows, the four that a later pooling joins beside each other, so that only the two changes of the window's size
 * move them; projections have their biases in them; attention, normalisation with its sum, and the activation are ONNX
 * Runtime's fused operators; and two convolutions of 1 x 1 in a row are one. Throws a RangeError for weights of another
 * network.
 */
export function buildEncoder(weights: ReadonlyMap<string, Weights>, side: number): ModelProto {
  if (side % ENCODER_STEP !== 0) throw new RangeError(`its input must be a multiple of ${ENCODER_STEP}`);
  const graph = new Graph(weights);
  const grid = side / 4;
  const windows = grid / FIRST_WINDOW;
  const regrouped = grid / 4 / SECOND_WINDOW;

  const positions = weights.get(`${FOLDED}Transpose_output_0`);
  if (positions?.dims.length !== 4 || positions.dims[1] !== 96)
    throw new RangeError('it has no position embedding');
  const patch = `${TRUNK}patch_embed.proj`;
  const patches = graph.op(
    'Conv',
    [
      'image',
      graph.constant(graph.weights(`${patch}.weight`, 96, 3, 7, 7), 96, 3, 7, 7),
      graph.constant(graph.weights(`${patch}.bias`, 96), 96),
    ],
    { strides: [4, 4], pads: [3, 3, 3, 3], kernel_shape: [7, 7] },
  );
  const placed = graph.op('Add', [
    patches,
    graph.constant(resizePositions(positions, grid), 1, 96, grid, grid),
  ]);
  // Windows, and in them fours of fours of tokens.
  const split = graph.reshape(placed, [96, windows, 2, 2, 2, windows, 2, 2, 2]);
  let tokens = grid * grid;
  let channels = 96;
  let heads = 1;
  let window = FIRST_WINDOW * FIRST_WINDOW;
  let value = graph.reshape(graph.transpose(split, [1, 5, 2, 6, 3, 7, 4, 8, 0]), [tokens, channels]);
  let branch: Branch | undefined;
  const stages: string[] = [];

  const joined = ({ value: added, bias }: Branch) => graph.op('Add', [value, graph.op('Add', [added, bias])]);
  /** Normalises the tokens after adding the branch to them. */
  const normalise = (name: string): string => {
    const scale = graph.constant(graph.weights(`${name}.weight`, channels), channels);
    const shift = graph.constant(graph.weights(`${name}.bias`, channels), channels);
    if (!branch) return graph.op('LayerNormalization', [value, scale, shift], { axis: -1, epsilon: EPSILON });
    const inputs = [value, branch.value, scale, shift, branch.bias];
    const result = graph.op('SkipLayerNormalization', inputs, { epsilon: EPSILON }, MICROSOFT);
    value = `${result}_sum`;
    graph.nodes.at(-1)?.output.push('', '', value);
    branch = undefined;
    return result;
  };

  for (let block = 0; block < BLOCKS; block++) {
    const name = `${TRUNK}blocks.${block}.`;
    const folded = (layer: string) => `${FOLDED}blocks.${block}/${layer}/Transpose_output_0`;
    const wider = WIDENING[block];
    const width = wider ?? channels;
    if (wider !== undefined) heads *= 2;
    if (block === REGROUPED && branch) {
      value = joined(branch);
      branch = undefined;
      const half = SECOND_WINDOW / 2;
      const fours = graph.reshape(value, [regrouped, half, regrouped, half, 4 * channels]);
      value = graph.reshape(graph.transpose(fours, [0, 2, 1, 3, 4]), [tokens, channels]);
      window = SECOND_WINDOW * SECOND_WINDOW;
    }
    const normal = normalise(`${name}norm1`);
    if (wider !== undefined) stages.push(value);
    const bias = graph.weights(`${name}attn.qkv.bias`, 3 * width);
    const matrix = graph.matrix(folded('attn/qkv'), channels, 3 * width);
    const part = (at: number) => [at * width, (at + 1) * width] as const;
    const [queries, keys, values] = [part(0), part(1), part(2)].map(([from, to]) =>
      graph.linear(normal, columnsOf(matrix, from, to), bias.slice(from, to)),
    );
    const seen = GLOBAL.includes(block) ? tokens : window;
    const groups = tokens / seen;
    let asked = queries ?? '';
    if (wider !== undefined) {
      const skip = graph.linear(
        normal,
        graph.matrix(folded('proj'), channels, width),
        graph.weights(`${name}proj.bias`, width),
      );
      value = graph.largestOfFour(skip, tokens, width);
      asked = graph.largestOfFour(asked, tokens, width);
    }
    const attention = graph.op(
      'MultiHeadAttention',
      [
        graph.reshape(asked, [groups, wider === undefined ? seen : seen / 4, width]),
        graph.reshape(keys ?? '', [groups, seen, width]),
        graph.reshape(values ?? '', [groups, seen, width]),
      ],
      { num_heads: heads },
      MICROSOFT,
    );
    if (wider !== undefined) {
      tokens /= 4;
      window /= 4;
      channels = wider;
    }
    branch = {
      value: graph.times(
        graph.reshape(attention, [tokens, channels]),
        graph.matrix(folded('attn/proj'), channels, channels),
      ),
      bias: graph.constant(graph.weights(`${name}attn.proj.bias`, channels), channels),
    };
    const second = normalise(`${name}norm2`);
    const hidden = graph.op(
      'BiasGelu',
      [
        graph.times(second, graph.matrix(folded('mlp/layers.0'), channels, 4 * channels)),
        graph.constant(graph.weights(`${name}mlp.layers.0.bias`, 4 * channels), 4 * channels),
      ],
      {},
      MICROSOFT,
    );
    branch = {
      value: graph.times(hidden, graph.matrix(folded('mlp/layers.1'), 4 * channels, channels)),
      bias: graph.constant(graph.weights(`${name}mlp.layers.1.bias`, channels), channels),
    };
  }
  if (branch) stages.push(joined(branch));
  const [finest = '', fine = '', coarse = '', coarsest = ''] = stages;

  // The finer two pass two convolutions of 1 x 1 in a row.
  const skipped = (stage: string, neck: number, skip: number, from: number, to: number): string => {
    const first = graph.pointwise(`${NECK}${neck}.conv`, from, 256);
    const second = graph.pointwise(`${SKIPS}${skip}`, 256, to);
    const bias = { rows: 1, columns: 256, values: graph.weights(`${NECK}${neck}.conv.bias`, 256) };
    const shift = plus(product(bias, second).values, graph.weights(`${SKIPS}${skip}.bias`, to));
    return graph.linear(stage, product(first, second), shift);
  };
  const fours = graph.reshape(skipped(finest, 3, 0, 96, 32), [windows, windows, 2, 2, 2, 2, 2, 2, 32]);
  graph.reshape(graph.transpose(fours, [8, 0, 2, 4, 6, 1, 3, 5, 7]), [1, 32, grid, grid], 'high_res_feats_0');
  const pairs = graph.reshape(skipped(fine, 2, 1, 192, 64), [windows, windows, 2, 2, 2, 2, 64]);
  graph.reshape(
    graph.transpose(pairs, [6, 0, 2, 4, 1, 3, 5]),
    [1, 64, grid / 2, grid / 2],
    'high_res_feats_1',
  );
  const memory = plus(graph.weights(`${NECK}1.conv.bias`, 256), graph.weights('no_mem_embed', 1, 256, 1));
  const upper = graph.linear(coarse, graph.pointwise(`${NECK}1.conv`, 384, 256), memory);
  const lower = graph.linear(
    coarsest,
    graph.pointwise(`${NECK}0.conv`, 768, 256),
    graph.weights(`${NECK}0.conv.bias`, 256),
  );
  // Each of the coarsest tokens belongs to four of the finer ones.
  const sum = graph.op('Add', [
    graph.reshape(upper, [tokens, 4, 256]),
    graph.reshape(lower, [tokens, 1, 256]),
  ]);
  const half = SECOND_WINDOW / 2;
  const embedding = graph.reshape(sum, [regrouped, regrouped, half, half, 2, 2, 256]);
  graph.reshape(
    graph.transpose(embedding, [6, 0, 2, 4, 1, 3, 5]),
    [1, 256, grid / 4, grid / 4],
    'image_embed',
  );

  const standard = (domain: string, version: bigint) => create(OperatorSetIdProtoSchema, { domain, version });
  return create(ModelProtoSchema, {
    irVersion: 8n,
    producerName: 'cutout',
    opsetImport: [standard('', 17n), standard(MICROSOFT, 1n)],
    graph: create(GraphProtoSchema, {
      name: 'encoder',
      node: graph.nodes,
      initializer: graph.initializers,
      input: [floatValue('image', [1, 3, side, side])],
      output: [
        floatValue('image_embed', [1, 256, grid / 4, grid / 4]),
        floatValue('high_res_feats_0', [1, 32, grid, grid]),
        floatValue('high_res_feats_1', [1, 64, grid / 2, grid / 2]),
      ],
    }),
  });
}
