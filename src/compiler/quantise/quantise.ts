import { clone } from '@bufbuild/protobuf';
import { padded } from '../lowPrecision/pack.ts';
import { attribute, onlyConsumerOf, producersOf } from '../onnx/graph.ts';
import type { FloatsOf } from '../onnx/half.ts';
import { type GraphProto, type NodeProto, NodeProtoSchema, type TensorProto } from '../onnx/onnx_pb.ts';
import { type QuantisedConv, quantiseConv } from './arithmetic.ts';
import { BIAS_STEPS, type QuantisationTable, scalesOf, type TensorEntry } from './table.ts';

/** Real value of one step of an 8-bit tensor, and the step that represents 0. */
export type Step = Pick<TensorEntry, 'scale' | 'zeroPoint'>;

/**
 * An 8-bit tensor, which a target knows as `value`. Channel c represents (q - zeroPoint) * scales[c]; `scale` is what the
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
  /** Keeps a node that reads and makes floats. */
  keep(node: NodeProto): void;
}

/** Operators that only move or compare values: they work on 8-bit values unchanged. */
const MOVING = new Set(['MaxPool', 'Resize', 'Relu', 'Concat']);

/**
 * ONNX Runtime's fast integer convolutions take multiples of 4 input channels, and give at least 16
 * (decision 0204).
 */
const INPUT_CHANNELS = 4;

/** A convolution in floats: weights [outputs, inputs, height, width] and a bias of each output. */
interface Layer {
  readonly weights: Float32Array;
  readonly dims: readonly bigint[];
  readonly bias: Float32Array;
}

/**
 * Returns a layer of one output channel that needs a finer resolution than 8 bits in `count` channels, each of which holds
 * one part of the range, clipped to it: their sum is the value. 16 cost less than a single one (INPUT_CHANNELS).
 */
function inSteps(
  name: string,
  { weights, dims, bias: [bias = 0, another] }: Layer,
  scale: number,
  { count, low }: NonNullable<TensorEntry['steps']>,
): Layer {
  if (another !== undefined) throw new RangeError(`${name} has more than one output channel`);
  const copies = new Float32Array(weights.length * count);
  for (let copy = 0; copy < count; copy++) copies.set(weights, copy * weights.length);
  const shifted = Float32Array.from({ length: count }, (_, copy) => bias - low - copy * 255 * scale);
  return { weights: copies, dims: dims.with(0, BigInt(count)), bias: shifted };
}

/**
 * Walks through a float graph in its order, which is topological, and tells a target what to compute in 8 bits. What stays
 * in floats is made when something needs it: the values that a node moves may be needed in 8 bits only.
 */
class Quantiser<T> {
  readonly #graph: GraphProto;
  readonly #table: QuantisationTable;
  readonly #floats: FloatsOf;
  readonly #target: Target<T>;
  readonly #initializers: ReadonlyMap<string, TensorProto>;
  readonly #onlyConsumer: (name: string) => NodeProto | undefined;
  readonly #producers: ReadonlyMap<string, NodeProto>;
  readonly #quantised = new Map<string, QuantisedTensor<T>>();
  /** Nodes on floats that nothing has asked for yet, by their outputs. */
  readonly #waiting = new Map<string, NodeProto>();
  /** Tensors that exist as floats. */
  readonly #float: Set<string>;
  /** ReLUs that are the lower end of the range of a convolution. */
  readonly #fused = new Set<NodeProto>();

  constructor(graph: GraphProto, table: QuantisationTable, floats: FloatsOf, target: Target<T>) {
    this.#graph = graph;
    this.#table = table;
    this.#floats = floats;
    this.#target = target;
    this.#initializers = new Map(graph.initializer.map((tensor) => [tensor.name, tensor]));
    this.#float = new Set([...this.#initializers.keys(), ...graph.input.map(({ name }) => name)]);
    this.#onlyConsumer = onlyConsumerOf(graph);
    this.#producers = producersOf(graph);
  }

  run(): void {
    this.#checkTable();
    for (const node of this.#graph.node) {
      if (this.#fused.has(node)) continue;
      if (node.opType === 'Conv' && !this.#table.float.includes(node.name)) this.#conv(node);
      else if (!this.#move(node) && !this.#add(node))
        for (const name of node.output) this.#waiting.set(name, node);
    }
    for (const { name } of this.#graph.output) this.#asFloat(name);
  }

  /** Throws a RangeError for names that the network does not have. */
  #checkTable(): void {
    const { node, input } = this.#graph;
    for (const name of this.#table.float)
      if (!node.some((each) => each.name === name))
        throw new RangeError(`the table names ${name}, which the network does not have`);
    for (const name of Object.keys(this.#table.tensors))
      if (!this.#producers.has(name) && !input.some((each) => each.name === name))
        throw new RangeError(`the table's tensor ${name} is none of the network's`);
  }

  #entry(name: string): TensorEntry {
    const entry = this.#table.tensors[name];
    if (!entry) throw new RangeError(`the table has no scale for the tensor ${name}`);
    return entry;
  }

  #set(name: string, value: T, { scale, zeroPoint }: Step, scales: Float64Array): QuantisedTensor<T> {
    const tensor = { value, scales, scale, zeroPoint };
    this.#quantised.set(name, tensor);
    return tensor;
  }

  /** Returns the 8-bit form of a tensor; a tensor of floats is quantised. */
  #asQuantised(name: string): QuantisedTensor<T> {
    const known = this.#quantised.get(name) ?? this.#movedAsQuantised(name);
    if (known) return known;
    const entry = this.#entry(name);
    this.#asFloat(name);
    const scales = scalesOf(entry, this.#channels(name));
    return this.#set(name, this.#target.quantise(name, entry, entry.channels && scales), entry, scales);
  }

  /** Returns the 8-bit output of a node that works on 8-bit values unchanged; undefined for another one. */
  #movedAsQuantised(name: string): QuantisedTensor<T> | undefined {
    const producer = this.#producers.get(name);
    if (!producer || this.#table.tensors[name] || !MOVING.has(producer.opType)) return undefined;
    for (const each of movedOf(producer)) this.#asQuantised(each);
    // The node may be needed on floats as well.
    return this.#move(Object.assign(clone(NodeProtoSchema, producer), { name: '' }));
  }

  /** Returns the number of channels of the output of a convolution or an addition, or of the image. */
  #channels(name: string): number {
    const producer = this.#producers.get(name);
    if (producer && producer.opType !== 'Conv') return this.#channels(producer.input[0] ?? '');
    const reader = this.#graph.node.find(({ opType, input }) => opType === 'Conv' && input[0] === name);
    const dims = this.#initializers.get((producer ?? reader)?.input[1] ?? '')?.dims;
    return Number(dims?.[producer ? 0 : 1] ?? Number.NaN);
  }

  /** Ensures that the tensor exists as floats, with its true values, under its own name. */
  #asFloat(name: string): void {
    if (this.#float.has(name)) return;
    const node = this.#waiting.get(name);
    const tensor = this.#quantised.get(name);
    for (const made of node?.output ?? [name]) this.#float.add(made);
    if (node) {
      for (const each of node.input) this.#asFloat(each);
      this.#target.keep(node);
    } else if (tensor) this.#target.dequantise(tensor, name);
  }

  /** Moves 8-bit values unchanged; concatenated channels keep their scales. Returns undefined for another node. */
  #move(node: NodeProto): QuantisedTensor<T> | undefined {
    const names = movedOf(node);
    const parts = names.flatMap((name) => this.#quantised.get(name) ?? []);
    const [first] = parts;
    if (!first || parts.length < names.length || !MOVING.has(node.opType)) return undefined;
    const joins = node.opType === 'Concat';
    if (joins && attribute(node, 'axis')?.i !== 1n) return undefined;
    if (parts.some(({ zeroPoint }) => zeroPoint !== first.zeroPoint)) return undefined;
    // A ReLU that was not fused with its convolution: an 8-bit tensor with zero point 0 has no negative values.
    if (node.opType === 'Relu' && first.zeroPoint !== 0) return undefined;
    for (const name of node.input.slice(names.length)) this.#asFloat(name);
    const value = node.opType === 'Relu' ? first.value : this.#target.move(node, parts);
    const scales = joins ? Float64Array.from(parts.flatMap((part) => [...part.scales])) : first.scales;
    const scale = Math.max(...parts.map((part) => part.scale));
    return this.#set(node.output[0] ?? '', value, { ...first, scale }, scales);
  }

  /** Adds two maps whose per-channel scales are equal up to one factor. */
  #add(node: NodeProto): boolean {
    const [a, b] = node.input.map((name) => this.#quantised.get(name));
    const [output = ''] = node.output;
    const entry = this.#table.tensors[output];
    if (node.opType !== 'Add' || !a || !b || !entry) return false;
    const scales = scalesOf(entry, a.scales.length);
    const alike = (tensor: QuantisedTensor<T>) =>
      tensor.scales.every((scale, c) => {
        const wanted = ((scales[c] ?? Number.NaN) / entry.scale) * tensor.scale;
        return Math.abs(scale - wanted) <= 1e-6 * wanted;
      });
    if (!alike(a) || !alike(b))
      throw new RangeError(`the channels that ${output} adds are scaled differently`);
    this.#set(output, this.#target.add(a, b, entry), entry, scales);
    return true;
  }

  /** Returns the layer that a convolution computes, with zeros for a bias that it does not have. */
  #layer(node: NodeProto): Layer {
    const [, weightName = '', biasName = ''] = node.input;
    const weight = this.#initializers.get(weightName);
    if (!weight) throw new RangeError(`the weights of ${node.name} are not constant`);
    if ((attribute(node, 'group')?.i ?? 1n) !== 1n) throw new RangeError(`${node.name} works in groups`);
    const bias = this.#initializers.get(biasName);
    return {
      weights: this.#floats(weight),
      dims: weight.dims,
      bias: bias ? this.#floats(bias) : new Float32Array(Number(weight.dims[0] ?? 0n)),
    };
  }

  /**
   * Pads input and weights of a convolution with zero channels to a multiple of INPUT_CHANNELS: such a convolution reads
   * its input in place; others first copy the neighbourhood of every pixel and store all sums.
   */
  #inWholeGroups(input: QuantisedTensor<T>, layer: Layer): [input: QuantisedTensor<T>, layer: Layer] {
    const { weights, dims } = layer;
    const [outputs = 0, inputs = 0, height = 0, width = 0] = dims.map(Number);
    const whole = Math.ceil(inputs / INPUT_CHANNELS) * INPUT_CHANNELS;
    if (whole === inputs) return [input, layer];
    const scales = new Float64Array(whole).fill(input.scale);
    scales.set(input.scales);
    const taps = height * width;
    return [
      { ...input, value: this.#target.pad(input, whole), scales },
      {
        ...layer,
        weights: padded(weights, [outputs, inputs * taps], [outputs, whole * taps]),
        dims: dims.with(1, BigInt(whole)),
      },
    ];
  }

  /** Fuses the ReLU that is all that reads a convolution, and returns the name of what is made. */
  #outputOf(node: NodeProto): string {
    const [output = ''] = node.output;
    const next = this.#onlyConsumer(output);
    if (next?.opType !== 'Relu') return output;
    this.#fused.add(next);
    const [name = ''] = next.output;
    // Quantisation clips values below zero point 0, which is the ReLU.
    if (this.#entry(name).zeroPoint !== 0)
      throw new RangeError(`${name} comes from a ReLU: its zero point must be 0`);
    return name;
  }

  /** Corrects the bias of a convolution by what calibration found. */
  #shift({ name }: NodeProto, bias: Float32Array, scales: Float64Array): void {
    const shifts = this.#table.bias[name];
    if (shifts && shifts.length !== bias.length)
      throw new RangeError(
        `the table has ${shifts.length} shifts for the ${bias.length} channels of ${name}`,
      );
    for (const [c, shift] of shifts?.entries() ?? [])
      bias[c] = (bias[c] ?? Number.NaN) + (shift / BIAS_STEPS) * (scales[c] ?? Number.NaN);
  }

  #conv(node: NodeProto): void {
    const given = this.#asQuantised(node.input[0] ?? '');
    const [input, whole] = this.#inWholeGroups(given, this.#layer(node));
    const output = this.#outputOf(node);
    const entry = this.#entry(output);
    const { steps, scale } = entry;
    const layer = steps ? inSteps(node.name, whole, scale, steps) : whole;
    const scales = scalesOf(entry, layer.bias.length);
    if (!steps) this.#shift(node, layer.bias, scales);
    const conv = quantiseConv(layer.weights, layer.bias, input.scales, scales, input.scale, scale);
    const value = this.#target.conv(node, input, conv, layer.dims, entry);
    if (steps) {
      this.#float.add(output);
      this.#target.sum(value, steps.count, scale, steps.low, output);
    } else this.#set(output, value, entry, scales);
  }
}

/** Returns the inputs of a node that it moves. */
const movedOf = ({ opType, input }: NodeProto): string[] => (opType === 'Concat' ? input : input.slice(0, 1));

/**
 * Quantises the convolutions of a float32 network with the scales of `table` (decision 0204), and additions, pooling,
 * resizing and concatenation between them; a ReLU is the lower end of an 8-bit range. Inputs and outputs stay floats, and
 * `graph` as it is: `target`, which is returned, makes what the network becomes. Throws a RangeError if table and network do not match, or for
 * what the target does not support.
 */
export function quantise<T, Made extends Target<T>>(
  graph: GraphProto,
  table: QuantisationTable,
  floats: FloatsOf,
  target: Made,
): Made {
  new Quantiser(graph, table, floats, target).run();
  return target;
}
