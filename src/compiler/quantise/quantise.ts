import { clone } from '@bufbuild/protobuf';
import { attribute, consumersOf } from '../onnx/graph.ts';
import { type GraphProto, type NodeProto, NodeProtoSchema, type TensorProto } from '../onnx/onnx_pb.ts';
import { type QuantisedConv, quantiseConv } from './arithmetic.ts';
import { BIAS_STEPS, type QuantisationTable, scalesOf, type TensorEntry } from './table.ts';

/** Real value of one step of an 8-bit tensor, and the step that represents 0. */
export interface Step {
  readonly scale: number;
  readonly zero: number;
}

/**
 * An 8-bit tensor, which a target knows as `value`. Channel c represents (q - zero) * scales[c]; `scale` is what the
 * operators have, since the scales of channels are folded into the weights before and after.
 */
export interface QuantisedTensor<T> extends Step {
  readonly value: T;
  readonly scales: Float64Array;
}

/** What a quantised network is written as: a graph of standard operators (qdq.ts) or a program (integerNetwork.ts). */
export interface Target<T> {
  /** Quantises a tensor of floats, with `scales` each channel by its own. */
  quantise(name: string, step: Step, scales: Float64Array | undefined): T;
  /** Convolves in 8 bits. `dims` are those of the weights. */
  conv(
    node: NodeProto,
    input: QuantisedTensor<T>,
    conv: QuantisedConv,
    dims: readonly bigint[],
    output: Step,
  ): T;
  add(a: QuantisedTensor<T>, b: QuantisedTensor<T>, output: Step): T;
  /** Runs an operator that works on 8-bit values unchanged. */
  move(node: NodeProto, inputs: readonly QuantisedTensor<T>[]): T;
  /** Appends channels of zeros. */
  pad(input: QuantisedTensor<T>, channels: number): T;
  /** Makes the floats of a tensor, under this name. */
  dequantise(tensor: QuantisedTensor<T>, name: string): void;
  /** Makes the floats `name`: the sum of the channels times `scale`, plus `low`. */
  sum(value: T, channels: number, scale: number, low: number, name: string): void;
  /** Keeps a node that reads and makes floats. Where `shaped` is given, only the shape of that tensor is read. */
  keep(node: NodeProto, shaped?: QuantisedTensor<T>): void;
}

/** Operators that only move or compare values: they work on 8-bit values unchanged. */
const PASSING = new Set(['MaxPool', 'Resize', 'Relu']);
const MOVING = new Set([...PASSING, 'Concat']);

/**
 * ONNX Runtime's fast integer convolutions take multiples of 4 input channels, and give at least 16
 * (decision 0204).
 */
const INPUT_CHANNELS = 4;

/** Walks through a float graph in its order, which is topological, and tells a target what to compute in 8 bits. */
class Quantiser<T> {
  readonly #graph: GraphProto;
  readonly #table: QuantisationTable;
  readonly #floats: (tensor: TensorProto) => Float32Array;
  readonly #target: Target<T>;
  readonly #initializers: ReadonlyMap<string, TensorProto>;
  readonly #consumers: ReadonlyMap<string, readonly NodeProto[]>;
  readonly #producers = new Map<string, NodeProto>();
  readonly #quantised = new Map<string, QuantisedTensor<T>>();
  /** Tensors that exist as floats. */
  readonly #float: Set<string>;
  /** ReLUs that are the lower end of the range of a convolution. */
  readonly #fused = new Set<NodeProto>();

  constructor(
    graph: GraphProto,
    table: QuantisationTable,
    floats: (tensor: TensorProto) => Float32Array,
    target: Target<T>,
  ) {
    this.#graph = graph;
    this.#table = table;
    this.#floats = floats;
    this.#target = target;
    this.#initializers = new Map(graph.initializer.map((tensor) => [tensor.name, tensor]));
    this.#float = new Set([...this.#initializers.keys(), ...graph.input.map((value) => value.name)]);
    this.#consumers = consumersOf(graph);
    for (const node of graph.node) for (const name of node.output) this.#producers.set(name, node);
  }

  run(): void {
    this.#checkTable();
    for (const node of this.#graph.node) {
      if (this.#fused.has(node)) continue;
      if (node.opType === 'Conv' && !this.#table.float.includes(node.name)) this.#conv(node);
      else if (!this.#pass(node) && !this.#concat(node) && !this.#add(node)) this.#keep(node);
    }
    for (const { name } of this.#graph.output) this.#asFloat(name);
  }

  /** Throws a RangeError for names that the network does not have. */
  #checkTable(): void {
    const known = new Set(this.#graph.node.map((node) => node.name));
    for (const name of this.#table.float) {
      if (!known.has(name)) throw new RangeError(`the table names ${name}, which the network does not have`);
    }
    const inputs = new Set(this.#graph.input.map((value) => value.name));
    for (const name of Object.keys(this.#table.tensors)) {
      if (!inputs.has(name) && !this.#producers.has(name))
        throw new RangeError(`the table's tensor ${name} is none of the network's`);
    }
  }

  #entry(name: string): TensorEntry {
    const entry = this.#table.tensors[name];
    if (!entry) throw new RangeError(`the table has no scale for the tensor ${name}`);
    return entry;
  }

  #set(name: string, value: T, { scale, zeroPoint }: TensorEntry, scales: Float64Array): QuantisedTensor<T> {
    const tensor = { value, scales, scale, zero: zeroPoint };
    this.#quantised.set(name, tensor);
    return tensor;
  }

  /** Returns the 8-bit form of a tensor; a tensor of floats is quantised. */
  #asQuantised(name: string): QuantisedTensor<T> {
    const known = this.#quantised.get(name) ?? this.#movedAsQuantised(name);
    if (known) return known;
    const entry = this.#entry(name);
    const scales = scalesOf(entry, this.#channels(name));
    const value = this.#target.quantise(name, stepOf(entry), entry.channels && scales);
    return this.#set(name, value, entry, scales);
  }

  /** Returns the 8-bit output of a node that works on 8-bit values unchanged; undefined for another one. */
  #movedAsQuantised(name: string): QuantisedTensor<T> | undefined {
    const producer = this.#producers.get(name);
    if (!producer || this.#table.tensors[name] || !MOVING.has(producer.opType)) return undefined;
    for (const each of producer.opType === 'Concat' ? producer.input : producer.input.slice(0, 1))
      this.#asQuantised(each);
    const again = Object.assign(clone(NodeProtoSchema, producer), { name: '' });
    return this.#pass(again) || this.#concat(again) ? this.#quantised.get(name) : undefined;
  }

  /** Returns the number of channels of the output of a convolution or an addition, or of the image. */
  #channels(name: string): number {
    const producer = this.#producers.get(name);
    if (producer?.opType === 'Conv') {
      return Number(this.#initializers.get(producer.input[1] ?? '')?.dims[0] ?? Number.NaN);
    }
    if (producer) return this.#channels(producer.input[0] ?? '');
    const reader = this.#consumers.get(name)?.find(({ opType }) => opType === 'Conv');
    return Number(this.#initializers.get(reader?.input[1] ?? '')?.dims[1] ?? Number.NaN);
  }

  /** Ensures that the tensor exists as floats, with its true values, under its own name. */
  #asFloat(name: string): void {
    const tensor = this.#quantised.get(name);
    if (!tensor || this.#float.has(name)) return;
    this.#float.add(name);
    this.#target.dequantise(tensor, name);
  }

  /** Keeps a node in floats; Shape reads whichever form exists. */
  #keep(node: NodeProto): void {
    const [first = ''] = node.input;
    const shaped =
      node.opType === 'Shape' && !this.#float.has(first) ? this.#quantised.get(first) : undefined;
    if (!shaped) for (const name of node.input) this.#asFloat(name);
    for (const name of node.output) this.#float.add(name);
    this.#target.keep(node, shaped);
  }

  #pass(node: NodeProto): boolean {
    const [first = ''] = node.input;
    const [output = ''] = node.output;
    const tensor = this.#quantised.get(first);
    if (!tensor || !PASSING.has(node.opType)) return false;
    // A ReLU that was not fused with its convolution: an 8-bit tensor with zero point 0 has no negative values.
    if (node.opType === 'Relu' && tensor.zero !== 0) return false;
    const value = node.opType === 'Relu' ? tensor.value : this.#target.move(node, [tensor]);
    this.#quantised.set(output, { ...tensor, value });
    return true;
  }

  /** Concatenates 8-bit maps unchanged; channels keep their scales. */
  #concat(node: NodeProto): boolean {
    const parts = node.input.flatMap((name) => this.#quantised.get(name) ?? []);
    if (node.opType !== 'Concat' || attribute(node, 'axis')?.i !== 1n) return false;
    const [first] = parts;
    if (!first || parts.length < node.input.length || parts.some(({ zero }) => zero !== first.zero))
      return false;
    const scales = Float64Array.from(parts.flatMap((part) => [...part.scales]));
    const value = this.#target.move(node, parts);
    const scale = Math.max(...parts.map((part) => part.scale));
    this.#quantised.set(node.output[0] ?? '', { value, scales, scale, zero: first.zero });
    return true;
  }

  /** Adds two maps whose per-channel scales are equal up to one factor. */
  #add(node: NodeProto): boolean {
    const [a, b] = node.input.map((name) => this.#quantised.get(name));
    const [output = ''] = node.output;
    if (node.opType !== 'Add' || !a || !b || !this.#table.tensors[output]) return false;
    const entry = this.#entry(output);
    const scales = scalesOf(entry, a.scales.length);
    const alike = (tensor: QuantisedTensor<T>) =>
      tensor.scales.every((scale, c) => {
        const wanted = ((scales[c] ?? Number.NaN) / entry.scale) * tensor.scale;
        return Math.abs(scale - wanted) <= 1e-6 * wanted;
      });
    if (!alike(a) || !alike(b))
      throw new RangeError(`the channels that ${output} adds are scaled differently`);
    this.#set(output, this.#target.add(a, b, stepOf(entry)), entry, scales);
    return true;
  }

  /** Returns the weights of a convolution as floats, and its bias, zeros where it has none. */
  #weights(node: NodeProto): { weights: Float32Array; bias: Float32Array; dims: readonly bigint[] } {
    const [, weightName = '', biasName = ''] = node.input;
    const weight = this.#initializers.get(weightName);
    if (!weight) throw new RangeError(`the weights of ${node.name} are not constant`);
    if ((attribute(node, 'group')?.i ?? 1n) !== 1n) throw new RangeError(`${node.name} works in groups`);
    const outputs = Number(weight.dims[0] ?? 0n);
    const bias = this.#initializers.get(biasName);
    return {
      weights: this.#floats(weight),
      bias: bias ? this.#floats(bias) : new Float32Array(outputs),
      dims: weight.dims,
    };
  }

  /**
   * Pads input and weights of a convolution with zero channels to a multiple of INPUT_CHANNELS: such a convolution reads
   * its input in place; others first copy the neighbourhood of every pixel and store all sums.
   */
  #inWholeGroups(
    input: QuantisedTensor<T>,
    weights: Float32Array,
    dims: readonly bigint[],
  ): { input: QuantisedTensor<T>; weights: Float32Array; dims: readonly bigint[] } {
    const [outputs = 0, inputs = 0] = dims.map(Number);
    const whole = Math.ceil(inputs / INPUT_CHANNELS) * INPUT_CHANNELS;
    if (whole === inputs) return { input, weights, dims };
    const scales = new Float64Array(whole).fill(input.scale);
    scales.set(input.scales);
    const row = weights.length / outputs;
    const padded = new Float32Array((weights.length / inputs) * whole);
    for (let output = 0; output < outputs; output++) {
      padded.set(weights.subarray(output * row, (output + 1) * row), output * (row / inputs) * whole);
    }
    const value = this.#target.pad(input, whole);
    return { input: { ...input, value, scales }, weights: padded, dims: dims.with(1, BigInt(whole)) };
  }

  /** Fuses the ReLU that is all that reads a convolution, and returns the name of what is made. */
  #outputOf(node: NodeProto): string {
    const [output = ''] = node.output;
    const [next, another] = this.#consumers.get(output) ?? [];
    if (next?.opType !== 'Relu' || another) return output;
    this.#fused.add(next);
    const [name = ''] = next.output;
    // Quantisation clips values below zero point 0, which is the ReLU.
    if (this.#entry(name).zeroPoint !== 0)
      throw new RangeError(`${name} comes from a ReLU: its zero point must be 0`);
    return name;
  }

  #conv(node: NodeProto): void {
    const { bias, ...made } = this.#weights(node);
    const given = this.#asQuantised(node.input[0] ?? '');
    const { input, weights, dims } = this.#inWholeGroups(given, made.weights, made.dims);
    const output = this.#outputOf(node);
    const entry = this.#entry(output);
    if (entry.steps) {
      this.#stepped(node, input, output, { ...entry, ...entry.steps }, { weights, bias, dims });
      return;
    }
    const scales = scalesOf(entry, bias.length);
    const shifts = this.#table.bias[node.name];
    if (shifts && shifts.length !== bias.length) {
      throw new RangeError(
        `the table has ${shifts.length} shifts for the ${bias.length} channels of ${node.name}`,
      );
    }
    for (const [c, shift] of shifts?.entries() ?? []) {
      bias[c] = (bias[c] ?? Number.NaN) + (shift / BIAS_STEPS) * (scales[c] ?? Number.NaN);
    }
    const conv = quantiseConv(weights, bias, input.scales, scales, input.scale, entry.scale);
    this.#set(output, this.#target.conv(node, input, conv, dims, stepOf(entry)), entry, scales);
  }

  /**
   * Makes a convolution with one output channel that needs a finer resolution than 8 bits. The channel is made `count`
   * times; each copy holds one part of the range, clipped to it, and their sum is the value. With 16 copies it costs less
   * than a single channel would (INPUT_CHANNELS).
   */
  #stepped(
    node: NodeProto,
    input: QuantisedTensor<T>,
    output: string,
    { count, low, ...entry }: TensorEntry & { readonly count: number; readonly low: number },
    { weights, bias, dims }: { weights: Float32Array; bias: Float32Array; dims: readonly bigint[] },
  ): void {
    if (bias.length !== 1) throw new RangeError(`${node.name} has more than one output channel`);
    const copies = new Float32Array(weights.length * count);
    const shifted = new Float32Array(count);
    for (let copy = 0; copy < count; copy++) {
      copies.set(weights, copy * weights.length);
      shifted[copy] = (bias[0] ?? Number.NaN) - low - copy * 255 * entry.scale;
    }
    const scales = new Float64Array(count).fill(entry.scale);
    const conv = quantiseConv(copies, shifted, input.scales, scales, input.scale, entry.scale);
    const value = this.#target.conv(node, input, conv, [BigInt(count), ...dims.slice(1)], stepOf(entry));
    this.#target.sum(value, count, entry.scale, low, output);
    this.#float.add(output);
  }
}

const stepOf = ({ scale, zeroPoint }: TensorEntry): Step => ({ scale, zero: zeroPoint });

/**
 * Quantises the convolutions of a float32 network with the scales of `table` (decision 0204), and additions, pooling,
 * resizing and concatenation between them; a ReLU is the lower end of an 8-bit range. Inputs and outputs stay floats, and
 * `graph` as it is: `target` makes what the network becomes. Throws a RangeError if table and network do not match, or for
 * what the target does not support.
 * @param floats reads the values of a float tensor in any encoding into a new array
 */
export function quantise<T>(
  graph: GraphProto,
  table: QuantisationTable,
  floats: (tensor: TensorProto) => Float32Array,
  target: Target<T>,
): void {
  new Quantiser(graph, table, floats, target).run();
}
