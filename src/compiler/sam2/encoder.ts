import { columnsOf, plus, product } from '../matrix.ts';
import { floatValue } from '../onnx/build.ts';
import type { ModelProto, ValueInfoProto } from '../onnx/onnx_pb.ts';
import { Graph } from './graph.ts';
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

/**
 * Returns the position embedding for a side of `to` tokens. The network adds a pattern that repeats in every window of 8 x 8 to a
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

/** What a branch of a block adds to the tokens, without its bias. */
interface Branch {
  readonly value: string;
  readonly bias: string;
}

/** Builds the encoder block by block; tokens stay in the order of their windows. */
class EncoderBuilder {
  readonly graph: Graph;
  /** Tokens along a side of the image, and windows at first and after regrouping. */
  readonly #grid: number;
  readonly #windows: number;
  readonly #regrouped: number;
  #tokens: number;
  #channels = 96;
  #heads = 1;
  /** Tokens of a window. */
  #window = FIRST_WINDOW * FIRST_WINDOW;
  /** The tokens without what the last branch adds to them. */
  #value: string;
  #branch: Branch | undefined;
  /** The tokens at the end of each size, the finest first. */
  readonly #stages: string[] = [];

  constructor(weights: ReadonlyMap<string, Weights>, side: number) {
    this.graph = new Graph(weights);
    this.#grid = side / 4;
    this.#windows = this.#grid / FIRST_WINDOW;
    this.#regrouped = this.#grid / 4 / SECOND_WINDOW;
    this.#tokens = this.#grid * this.#grid;
    const positions = weights.get(`${FOLDED}Transpose_output_0`);
    if (positions?.dims.length !== 4 || positions.dims[1] !== 96)
      throw new RangeError('it has no position embedding');
    this.#value = this.#embed(positions);
  }

  /** Returns the tokens of the image: windows, and in them fours of fours of tokens. */
  #embed(positions: Weights): string {
    const { graph } = this;
    const [grid, windows] = [this.#grid, this.#windows];
    const patch = `${TRUNK}patch_embed.proj`;
    const parameters = [
      graph.parameter(`${patch}.weight`, 96, 3, 7, 7),
      graph.parameter(`${patch}.bias`, 96),
    ];
    const window = { strides: [4, 4], pads: [3, 3, 3, 3], kernel_shape: [7, 7] };
    const patches = graph.op('Conv', ['image', ...parameters], window);
    const embedding = graph.floats([1, 96, grid, grid], resizePositions(positions, grid));
    const side = [windows, 2, 2, 2];
    const split = graph.reshape(graph.op('Add', [patches, embedding]), [96, ...side, ...side]);
    return graph.reshape(graph.transpose(split, [1, 5, 2, 6, 3, 7, 4, 8, 0]), [this.#tokens, 96]);
  }

  /** Adds what the last branch gives to the tokens. */
  #join(): string {
    if (!this.#branch) return this.#value;
    const { value, bias } = this.#branch;
    this.#branch = undefined;
    this.#value = this.graph.op('Add', [this.#value, this.graph.op('Add', [value, bias])]);
    return this.#value;
  }

  /** Normalises the tokens after adding the branch to them. */
  #normalise(name: string): string {
    const { graph } = this;
    const channels = this.#channels;
    const scale = graph.parameter(`${name}.weight`, channels);
    const shift = graph.parameter(`${name}.bias`, channels);
    if (!this.#branch)
      return graph.op('LayerNormalization', [this.#value, scale, shift], { axis: -1, epsilon: EPSILON });
    const inputs = [this.#value, this.#branch.value, scale, shift, this.#branch.bias];
    const result = graph.op('SkipLayerNormalization', inputs, { epsilon: EPSILON }, MICROSOFT);
    this.#value = `${result}_sum`;
    graph.nodes.at(-1)?.output.push('', '', this.#value);
    this.#branch = undefined;
    return result;
  }

  /** Reorders the tokens for windows of 14 x 14. */
  #regroup(): void {
    const half = SECOND_WINDOW / 2;
    const [regrouped, channels] = [this.#regrouped, this.#channels];
    const fours = this.graph.reshape(this.#join(), [regrouped, half, regrouped, half, 4 * channels]);
    const moved = this.graph.transpose(fours, [0, 2, 1, 3, 4]);
    this.#value = this.graph.reshape(moved, [this.#tokens, channels]);
    this.#window = SECOND_WINDOW * SECOND_WINDOW;
  }

  /** Adds one of the network's blocks: attention, then two layers. */
  block(index: number): void {
    if (index === REGROUPED) this.#regroup();
    const name = `${TRUNK}blocks.${index}.`;
    const folded = (layer: string) => `${FOLDED}blocks.${index}/${layer}/Transpose_output_0`;
    this.#attend(index, name, folded);
    this.#layers(name, folded);
  }

  #attend(index: number, name: string, folded: (layer: string) => string): void {
    const { graph } = this;
    const wider = WIDENING[index];
    const width = wider ?? this.#channels;
    if (wider !== undefined) this.#heads *= 2;
    const normal = this.#normalise(`${name}norm1`);
    if (wider !== undefined) this.#stages.push(this.#value);
    const bias = graph.weights(`${name}attn.qkv.bias`, 3 * width);
    const matrix = graph.matrix(folded('attn/qkv'), this.#channels, 3 * width);
    const [queries = '', keys = '', values = ''] = [0, width, 2 * width].map((from) =>
      graph.linear(normal, columnsOf(matrix, from, from + width), bias.slice(from, from + width)),
    );
    const seen = GLOBAL.includes(index) ? this.#tokens : this.#window;
    const groups = this.#tokens / seen;
    let asked = queries;
    if (wider !== undefined) {
      const skip = graph.linear(
        normal,
        graph.matrix(folded('proj'), this.#channels, width),
        graph.weights(`${name}proj.bias`, width),
      );
      this.#value = graph.largestOfFour(skip, this.#tokens, width);
      asked = graph.largestOfFour(asked, this.#tokens, width);
      this.#tokens /= 4;
      this.#window /= 4;
      this.#channels = wider;
    }
    const attention = graph.op(
      'MultiHeadAttention',
      [
        graph.reshape(asked, [groups, this.#tokens / groups, width]),
        graph.reshape(keys, [groups, seen, width]),
        graph.reshape(values, [groups, seen, width]),
      ],
      { num_heads: this.#heads },
      MICROSOFT,
    );
    const together = graph.reshape(attention, [this.#tokens, width]);
    this.#branch = {
      value: graph.times(together, graph.matrix(folded('attn/proj'), width, width)),
      bias: graph.parameter(`${name}attn.proj.bias`, width),
    };
  }

  #layers(name: string, folded: (layer: string) => string): void {
    const { graph } = this;
    const channels = this.#channels;
    const second = this.#normalise(`${name}norm2`);
    const wide = graph.times(second, graph.matrix(folded('mlp/layers.0'), channels, 4 * channels));
    const wideBias = graph.parameter(`${name}mlp.layers.0.bias`, 4 * channels);
    const hidden = graph.op('BiasGelu', [wide, wideBias], {}, MICROSOFT);
    this.#branch = {
      value: graph.times(hidden, graph.matrix(folded('mlp/layers.1'), 4 * channels, channels)),
      bias: graph.parameter(`${name}mlp.layers.1.bias`, channels),
    };
  }

  /** Passes a stage through two convolutions of 1 x 1 in a row, as one. */
  #skipped(stage: string, neck: number, skip: number, from: number, to: number): string {
    const { graph } = this;
    const first = graph.pointwise(`${NECK}${neck}.conv`, from, 256);
    const second = graph.pointwise(`${SKIPS}${skip}`, 256, to);
    const bias = { rows: 1, columns: 256, values: graph.weights(`${NECK}${neck}.conv.bias`, 256) };
    const shift = plus(product(bias, second).values, graph.weights(`${SKIPS}${skip}.bias`, to));
    return graph.linear(stage, product(first, second), shift);
  }

  /** Makes the three outputs. */
  finish(): ValueInfoProto[] {
    const { graph } = this;
    this.#stages.push(this.#join());
    const [finest = '', fine = '', coarse = '', coarsest = ''] = this.#stages;
    const [grid, windows, regrouped] = [this.#grid, this.#windows, this.#regrouped];
    const output = (value: string, name: string, dims: readonly number[]) => {
      graph.reshape(value, dims, name);
      return floatValue(name, dims);
    };
    const halves = [2, 2, 2, 2, 2, 2];
    const fours = graph.reshape(this.#skipped(finest, 3, 0, 96, 32), [windows, windows, ...halves, 32]);
    const large = graph.transpose(fours, [8, 0, 2, 4, 6, 1, 3, 5, 7]);
    const first = output(large, 'high_res_feats_0', [1, 32, grid, grid]);
    const pairs = graph.reshape(this.#skipped(fine, 2, 1, 192, 64), [windows, windows, 2, 2, 2, 2, 64]);
    const middle = graph.transpose(pairs, [6, 0, 2, 4, 1, 3, 5]);
    const second = output(middle, 'high_res_feats_1', [1, 64, grid / 2, grid / 2]);
    const memory = plus(graph.weights(`${NECK}1.conv.bias`, 256), graph.weights('no_mem_embed', 1, 256, 1));
    const upper = graph.linear(coarse, graph.pointwise(`${NECK}1.conv`, 384, 256), memory);
    const lower = graph.linear(
      coarsest,
      graph.pointwise(`${NECK}0.conv`, 768, 256),
      graph.weights(`${NECK}0.conv.bias`, 256),
    );
    // Each of the coarsest tokens belongs to four of the finer ones.
    const sum = graph.op('Add', [
      graph.reshape(upper, [this.#tokens, 4, 256]),
      graph.reshape(lower, [this.#tokens, 1, 256]),
    ]);
    const half = SECOND_WINDOW / 2;
    const spread = graph.reshape(sum, [regrouped, regrouped, half, half, 2, 2, 256]);
    const small = graph.transpose(spread, [6, 0, 2, 4, 1, 3, 5]);
    return [output(small, 'image_embed', [1, 256, grid / 4, grid / 4]), first, second];
  }
}

/**
 * Builds SAM 2's Hiera tiny encoder for images of another size than it was published for, from its published weights.
 *
 * It computes the published network's function at `side`, a multiple of 224, with fewer steps: tokens stay in the order of
 * their windows, the four that a later pooling joins beside each other, so that only the two changes of the window's size
 * move them; projections have their biases in them; attention, normalisation with its sum, and the activation are ONNX
 * Runtime's fused operators; and two convolutions of 1 x 1 in a row are one. Throws a RangeError for weights of another
 * network.
 */
export function buildEncoder(weights: ReadonlyMap<string, Weights>, side: number): ModelProto {
  if (side % ENCODER_STEP !== 0) throw new RangeError(`its input must be a multiple of ${ENCODER_STEP}`);
  const builder = new EncoderBuilder(weights, side);
  for (let block = 0; block < BLOCKS; block++) builder.block(block);
  const output = builder.finish();
  return builder.graph.model('encoder', floatValue('image', [1, 3, side, side]), output, [MICROSOFT]);
}
