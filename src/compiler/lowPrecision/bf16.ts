import { attribute, subgraphs } from '../onnx/graph.ts';
import type { GraphProto, ModelProto, NodeProto } from '../onnx/onnx_pb.ts';
import {
  type ConvGeometry,
  groupedGeometry,
  type Side,
  samplingOf,
  sideAfter,
  Unsupported,
  windowOf,
} from './geometry.ts';
import { findIbNorm, type IbNorm } from './ibNorm.ts';
import { importOperators } from './operator.ts';
import { LANES, packSixteen, type Sixteen, wholeGroups } from './pack.ts';
import { type FloatsOf, GraphPartition } from './partition.ts';
import { type Activation, isFused, type ProgramWriter, type ValueSpec } from './program.ts';

/** Channels of an image, and those that are read: a kernel reads two at a time, and an even number of pairs is faster. */
const IMAGE = { channels: 3, read: 4 };

/** Slope and offset of a hard sigmoid. */
const HARD = { alpha: Math.fround(1 / 6), beta: 0.5 };

const firsts = (count: number): number[] => Array.from({ length: count }, (_, at) => at);
const sameList = (a: readonly number[], b: readonly number[]) =>
  a.length === b.length && a.every((value, at) => value === b[at]);

/** A tensor of the network in the program: some channels of a value. The other ones are read with weights of 0. */
interface Source {
  readonly value: number;
  /** Channels of the value, in the order of the tensor's. */
  readonly places: readonly number[];
  readonly side: Side;
  /** A vector [N, channels], which the program has as a map of one pixel. */
  readonly flat?: true;
}

/** The convolutional part of a float network as one program in bf16, and what of its graph is left around it. */
class Bf16NetworkConverter {
  readonly #partition: GraphPartition;
  readonly #program: ProgramWriter;
  readonly #sources = new Map<string, Source>();
  /** Nodes outside the program that nothing has asked for yet, by their outputs. */
  readonly #waiting = new Map<string, NodeProto>();
  /** Nodes that were computed with an earlier one. */
  readonly #done = new Set<NodeProto>();

  readonly #format: Sixteen;

  constructor(graph: GraphProto, floatsOf: FloatsOf, format: Sixteen) {
    this.#partition = new GraphPartition(graph, floatsOf, IMAGE.channels);
    this.#program = this.#partition.program;
    this.#format = format;
  }

  /** Returns the program. */
  run(side: Side): ProgramWriter {
    const value = this.#program.input({ type: 'bf16', channels: IMAGE.read, zero: 0 });
    this.#sources.set(this.#partition.input, { value, places: firsts(IMAGE.channels), side });
    for (const node of this.#partition.nodes) {
      if (this.#done.has(node) || (node.domain === '' && this.#node(node))) continue;
      if (subgraphs(node).length > 0) throw new Unsupported(`${node.name} has a graph of its own`);
      for (const name of node.output) this.#waiting.set(name, node);
    }
    for (const name of this.#partition.outputs) this.#outside(name);
    if (this.#program.outputs === 0) throw new Unsupported('it has no convolutions');
    this.#partition.replaceNodes('Bf16Network');
    return this.#program;
  }

  /** A map of bf16. */
  #map(name: string): Source | undefined {
    const source = this.#sources.get(name);
    return source && this.#program.spec(source.value).type === 'bf16' ? source : undefined;
  }

  #node(node: NodeProto): boolean {
    const [first = '', second = ''] = node.input;
    const [to = ''] = node.output;
    const a = this.#map(first);
    const set = (source: Source) => {
      this.#sources.set(to, source);
      return true;
    };
    if (node.opType === 'Conv') return this.#conv(node);
    const activation = this.#activationOf(node);
    if (activation !== undefined) {
      const source = this.#sources.get(first);
      // Joined with the convolution before it.
      if (source && this.#fused(first)?.node === node) return set(source);
      return a !== undefined && set({ ...a, value: this.#program.activate(a.value, activation) });
    }
    if (node.opType === 'Mul') return this.#gate(node);
    if (!a) return false;
    if (a.flat) return this.#flat(node, a);
    switch (node.opType) {
      case 'MaxPool':
        return set({ ...a, value: this.#program.maxPool(a.value, ...windowOf(node)), side: undefined });
      case 'Resize':
        return this.#resize(node, a);
      case 'Add': {
        const b = this.#map(second);
        if (!b || !this.#alike(a, b)) return false;
        return set({ ...a, value: this.#program.combine([a.value, b.value], this.#specOf(a), false) });
      }
      case 'Concat':
        return this.#concat(node);
      case 'GlobalAveragePool':
        return set({ ...a, value: this.#program.mean(a.value), side: [1, 1] });
      case 'InstanceNormalization':
        return set({ ...a, value: this.#normalise(a, node, 0, false) });
      case 'Reshape':
        if (!this.#isPixel(a) || this.#lengthOf(second) !== 2) return false;
        return set({ ...a, flat: true });
      case 'Expand':
        // Its readers take one pixel for all.
        return this.#isPixel(a) && this.#partition.onlyConsumer(to)?.opType === 'Mul' && set(a);
      default:
        return false;
    }
  }

  #specOf({ value }: Source): ValueSpec {
    return this.#program.spec(value);
  }

  #isPixel({ side }: Source): boolean {
    return side?.[0] === 1 && side[1] === 1;
  }

  /** Whether two maps have the same channels at the same places. */
  #alike(a: Source, b: Source): boolean {
    return this.#specOf(a).channels === this.#specOf(b).channels && sameList(a.places, b.places);
  }

  /** Numbers of a shape that a network computes: those of a constant, or of a concatenation of single ones. */
  #lengthOf(name: string): number | undefined {
    const tensor = this.#partition.findInitializer(name);
    if (tensor) return Number(tensor.dims[0] ?? 1n);
    const node = this.#waiting.get(name);
    return node?.opType === 'Concat' ? node.input.length : undefined;
  }

  #activationOf(node: NodeProto): Activation | undefined {
    const number = (name: string) => attribute(node, name)?.f;
    switch (node.opType) {
      case 'Relu':
        return 'relu';
      case 'HardSwish':
        return 'hardSwish';
      case 'Sigmoid':
        return 'sigmoid';
      case 'HardSigmoid':
        return number('alpha') === HARD.alpha && number('beta') === HARD.beta ? 'hardSigmoid' : undefined;
      case 'Clip': {
        const limits = node.input.slice(1).map((name) => this.#partition.findInitializer(name));
        if (limits.length !== 2 || limits.some((tensor) => !tensor)) return undefined;
        const [[low] = [], [high] = []] = node.input.slice(1).map((name) => this.#partition.floats(name));
        return low === 0 && high === 6 ? 'relu6' : undefined;
      }
      default:
        return undefined;
    }
  }

  /** The activation that is all that reads the output of a convolution, where it can be part of it. */
  #fused(name: string): { node: NodeProto; activation: Activation } | undefined {
    const node = this.#convolved.has(name) ? this.#partition.onlyConsumer(name) : undefined;
    const activation = node && this.#activationOf(node);
    return node && activation && isFused(activation) ? { node, activation } : undefined;
  }
  readonly #convolved = new Set<string>();

  #resize(node: NodeProto, a: Source): boolean {
    const [, , scalesName = '', sizesName = ''] = node.input;
    let scales: Float32Array;
    if (scalesName !== '') {
      if (!this.#partition.findInitializer(scalesName)) return false;
      scales = this.#partition.floats(scalesName);
    } else {
      const size = this.#sizeOf(sizesName);
      if (!size || !a.side) return false;
      scales = Float32Array.of(1, 1, size[0] / a.side[0], size[1] / a.side[1]);
    }
    const { factor, grid } = samplingOf(node, scales);
    const value =
      grid === 'centres'
        ? this.#program.resize(a.value, factor)
        : this.#program.resample(a.value, factor, grid);
    const along = (length: number) => (grid === 'reduced' ? Math.floor(length / factor) : length * factor);
    const side: Side = a.side && [along(a.side[0]), along(a.side[1])];
    this.#sources.set(node.output[0] ?? '', { ...a, value, side });
    return true;
  }

  /** Height and width in the sizes of a Resize, behind whatever the batch and the channels are. */
  #sizeOf(name: string): [number, number] | undefined {
    const node = this.#waiting.get(name);
    const numbers = this.#partition.integers(node?.opType === 'Concat' ? (node.input.at(-1) ?? '') : name);
    const [height, width] = numbers?.slice(-2) ?? [];
    return height !== undefined && width !== undefined ? [height, width] : undefined;
  }

  #concat(node: NodeProto): boolean {
    const parts = node.input.flatMap((name) => this.#map(name) ?? []);
    const axis = attribute(node, 'axis')?.i;
    const [first] = parts;
    if (!first || axis !== 1n || parts.length < node.input.length || parts.some(({ flat }) => flat))
      return false;
    let before = 0;
    const places = parts.flatMap((part) => {
      const own = part.places.map((place) => place + before);
      before += this.#specOf(part).channels;
      return own;
    });
    const value = this.#program.concat(parts.map((part) => part.value));
    const { side } = parts.find((part) => part.side) ?? first;
    this.#sources.set(node.output[0] ?? '', { value, places, side });
    return true;
  }

  /** A map times one pixel. */
  #gate({ input: [first = '', second = ''], output: [to = ''] }: NodeProto): boolean {
    const [a, b] = [this.#map(first), this.#map(second)];
    if (!a || !b || a.flat || b.flat || !this.#alike(a, b)) return false;
    const [map, gates] = this.#isPixel(b) ? [a, b] : [b, a];
    if (!this.#isPixel(gates)) return false;
    this.#sources.set(to, { ...map, value: this.#program.gate(map.value, gates.value) });
    return true;
  }

  /** What is computed of a vector of channels. */
  #flat(node: NodeProto, a: Source): boolean {
    const [, second = ''] = node.input;
    const [to = ''] = node.output;
    if (node.opType === 'Reshape' && this.#lengthOf(second) === 4) {
      const { value, places, side } = a;
      this.#sources.set(to, { value, places, side });
      return true;
    }
    if (node.opType !== 'MatMul') return false;
    const tensor = this.#partition.findInitializer(second);
    const [channels = 0, outputs = 0] = tensor?.dims.map(Number) ?? [];
    if (tensor?.dims.length !== 2 || channels !== a.places.length) return false;
    const given = this.#partition.floats(second);
    const weights = new Float32Array(given.length);
    for (let c = 0; c < channels; c++) {
      for (let o = 0; o < outputs; o++) weights[o * channels + c] = given[c * outputs + o] as number;
    }
    const pixel = { kernel: [1, 1], stride: 1, dilation: 1, pads: [0, 0, 0, 0] } as const;
    const bias = new Float32Array(outputs);
    const made = this.#dense(a, { ...pixel, channels, outputs, weights, bias, floats: false }, to);
    this.#sources.set(to, { ...made, flat: true });
    return true;
  }

  /** Normalises the channels from `first` on by the constants of an InstanceNormalization. */
  #normalise(a: Source, { input, attribute: attributes }: NodeProto, first: number, relu: boolean): number {
    const [, scaleName, biasName] = input;
    const all = this.#specOf(a).channels;
    if (first > 0 && !sameList(a.places, firsts(a.places.length))) {
      throw new Unsupported('a part of a concatenation is normalised');
    }
    const spread = (values: Float32Array) => {
      const made = new Float32Array(all - first);
      for (const [at, value] of values.entries()) made[(a.places[first + at] as number) - first] = value;
      return made;
    };
    return this.#program.normalise(a.value, {
      first,
      relu,
      epsilon: attributes.find(({ name }) => name === 'epsilon')?.f ?? 1e-5,
      scales: spread(this.#partition.floats(scaleName)),
      biases: spread(this.#partition.floats(biasName)),
    });
  }

  /** Whether a tensor is only asked for outside, where floats are wanted. */
  #leaves(name: string): boolean {
    const next = this.#partition.onlyConsumer(name);
    return (
      this.#partition.outputs.has(name) ||
      (next?.opType === 'Sigmoid' && this.#partition.outputs.has(next.output[0] ?? ''))
    );
  }

  /** A convolution. The last one of a network, and one of few outputs, gives floats. */
  #conv(node: NodeProto): boolean {
    const [from = '', weightName, biasName] = node.input;
    const [to = ''] = node.output;
    const a = this.#map(from);
    const tensor = this.#partition.findInitializer(weightName ?? '');
    if (!a || a.flat || !tensor) return false;
    const geometry = groupedGeometry(node, tensor.dims, a.side);
    const { outputs, channels, groups } = geometry;
    if (channels * groups !== a.places.length || this.#specOf(a).channels % 2 !== 0) return false;
    const weights = this.#partition.floats(weightName);
    const bias = biasName ? this.#partition.floats(biasName) : new Float32Array(outputs);
    if (groups > 1) return this.#depthwise(a, { ...geometry, weights, bias }, to);
    const norm = findIbNorm(this.#partition, to, outputs);
    if (norm && outputs >= LANES) {
      const scaled = this.#constantHalf(norm, weights, bias);
      this.#statisticalHalf(norm, this.#dense(a, { ...geometry, ...scaled, floats: false }, to));
      return true;
    }
    const floats = outputs < LANES || this.#leaves(to);
    this.#sources.set(to, this.#dense(a, { ...geometry, weights, bias, floats }, to));
    return true;
  }

  /** A convolution of all channels. */
  #dense(
    a: Source,
    conv: ConvGeometry & { weights: Float32Array; bias: Float32Array; floats: boolean },
    to: string,
  ): Source {
    const { outputs, channels, kernel, floats } = conv;
    const read = this.#specOf(a).channels;
    const made = wholeGroups(outputs);
    const bias = new Float32Array(made);
    bias.set(conv.bias);
    const taps = kernel[0] * kernel[1];
    const weights = spreadWeights(conv.weights, [outputs, channels, taps], a.places, [made, read]);
    const spec: ValueSpec = { type: floats ? 'floats' : 'bf16', channels: made, zero: 0 };
    this.#convolved.add(to);
    const value = this.#program.bf16Conv(a.value, spec, {
      ...conv,
      channel: 0,
      channels: read,
      activation: this.#fused(to)?.activation ?? 'none',
      weights: packSixteen(weights, made, read, conv, this.#format),
      bias,
    });
    return { value, places: firsts(outputs), side: sideAfter(conv, a.side) };
  }

  #depthwise(
    a: Source,
    conv: ConvGeometry & { weights: Float32Array; bias: Float32Array },
    to: string,
  ): boolean {
    const { outputs, channels, kernel } = conv;
    const made = this.#specOf(a).channels;
    if (channels !== 1 || outputs !== a.places.length || made % LANES !== 0) return false;
    const taps = kernel[0] * kernel[1];
    const bias = new Float32Array(made);
    const weights = new Float32Array(taps * made);
    for (const [c, place] of a.places.entries()) {
      bias[place] = conv.bias[c] as number;
      for (let tap = 0; tap < taps; tap++)
        weights[tap * made + place] = conv.weights[c * taps + tap] as number;
    }
    this.#convolved.add(to);
    const activation = this.#fused(to)?.activation ?? 'none';
    const value = this.#program.depthwise(a.value, { ...conv, activation, weights, bias });
    this.#sources.set(to, { value, places: a.places, side: sideAfter(conv, a.side) });
    return true;
  }

  /** Weights and biases with the constants by which the first half of their outputs is normalised. */
  #constantHalf(
    { first, constant }: IbNorm,
    given: Float32Array,
    givenBias: Float32Array,
  ): { weights: Float32Array; bias: Float32Array } {
    const [scale, offset, mean, variance] = constant.input
      .slice(1)
      .map((name) => this.#partition.floats(name));
    const epsilon = attribute(constant, 'epsilon')?.f ?? 1e-5;
    const [weights, bias] = [Float32Array.from(given), Float32Array.from(givenBias)];
    const row = weights.length / bias.length;
    for (let c = 0; c < first; c++) {
      const at = (values: Float32Array | undefined) => values?.[c] ?? Number.NaN;
      const factor = at(scale) / Math.sqrt(at(variance) + epsilon);
      for (let i = c * row; i < (c + 1) * row; i++) weights[i] = (weights[i] as number) * factor;
      bias[c] = (at(bias) - at(mean)) * factor + at(offset);
    }
    return { weights, bias };
  }

  /** The second half of the outputs of a convolution, normalised by its statistics. */
  #statisticalHalf({ first, statistical, nodes, output }: IbNorm, convolved: Source): void {
    const next = this.#partition.reluAfter(output);
    const value = this.#normalise(convolved, statistical, first, next !== undefined);
    for (const node of nodes) this.#done.add(node);
    if (next) this.#done.add(next);
    this.#sources.set(next?.output[0] ?? output, { ...convolved, value });
  }

  /** A node that stays outside. A large convolution would take longer there than all that is gained. */
  #keep(node: NodeProto): void {
    for (const name of node.output) this.#waiting.delete(name);
    const weights = node.opType === 'Conv' ? this.#partition.findInitializer(node.input[1] ?? '') : undefined;
    if (weights && (weights.dims[0] ?? 0n) >= BigInt(LANES)) {
      throw new Unsupported(`${node.name} reads what is not computed in bf16`);
    }
    for (const name of node.input) this.#outside(name);
    this.#partition.keep(node);
  }

  /** Makes sure that a tensor exists outside the program. */
  #outside(name: string): void {
    const node = this.#waiting.get(name);
    if (node) this.#keep(node);
    const source = this.#sources.get(name);
    if (!source || this.#partition.hasProgramOutput(name) || name === this.#partition.input) return;
    if (source.flat || !sameList(source.places, firsts(source.places.length))) {
      throw new Unsupported(`${name} is needed outside`);
    }
    this.#partition.addProgramOutput(name, this.#program.planes(source.value, source.places.length));
  }
}

/** The weights [outputs, channels, taps] of the channels at `places` of `all` ones, 0 for the others. */
function spreadWeights(
  values: Float32Array,
  [outputs, channels, taps]: readonly [number, number, number],
  places: readonly number[],
  [allOutputs, all]: readonly [number, number],
): Float32Array {
  if (outputs === allOutputs && channels === all) return values;
  const made = new Float32Array(allOutputs * all * taps);
  for (let o = 0; o < outputs; o++) {
    for (const [c, place] of places.entries()) {
      const from = (o * channels + c) * taps;
      made.set(values.subarray(from, from + taps), (o * all + place) * taps);
    }
  }
  return made;
}

/** Height and width of the network's input, where both are given. */
function sideOf({ input: [image] }: GraphProto): Side {
  if (image?.type?.value.case !== 'tensorType') return undefined;
  const sides = image.type.value.value.shape?.dim
    .slice(2)
    .map(({ value }) => (value.case === 'dimValue' ? Number(value.value) : 0));
  const [height = 0, width = 0] = sides ?? [];
  return height > 0 && width > 0 ? [height, width] : undefined;
}

/**
 * The program of the convolutional part of a graph, with weights in this format; the graph's nodes become one that runs it,
 * and those that stay outside it. Throws a RangeError, and leaves the graph as it is, where it cannot be made.
 * @param floats the numbers of a tensor of floats, however they are stored
 */
export const convolutionalProgram = (graph: GraphProto, floats: FloatsOf, format: Sixteen): ProgramWriter =>
  new Bf16NetworkConverter(graph, floats, format).run(sideOf(graph));

/**
 * Makes the convolutional part of a float network one node of the operator `Bf16Network` (native/low_precision). Changes
 * `model`. Throws a RangeError, and leaves the model as it is, where the network has something in that part that the
 * operator does not know.
 * @param floats the numbers of a tensor of floats, however they are stored
 */
export function asBf16Network(model: ModelProto, floats: FloatsOf): void {
  const { graph } = model;
  if (!graph) throw new RangeError('the file has no graph');
  convolutionalProgram(graph, floats, 'bf16');
  importOperators(model);
}
