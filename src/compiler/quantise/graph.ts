import { clone } from '@bufbuild/protobuf';
import {
  attribute,
  consumersOf,
  FLOAT,
  floatTensor,
  INT8,
  INT32,
  int64Tensor,
  newNode,
  rawTensor,
  UINT8,
} from '../onnx/graph.ts';
import { type GraphProto, type NodeProto, NodeProtoSchema, type TensorProto } from '../onnx/onnx_pb.ts';
import { quantiseConv } from './arithmetic.ts';
import { BIAS_STEPS, type QuantisationTable, scalesOf, type TensorEntry } from './table.ts';

/** An 8-bit tensor of the rewritten network. Channel c represents (q - zero) * scales[c]. */
interface Eight {
  readonly name: string;
  readonly scales: Float64Array;
  /** The scale written to the file; per-channel scales are folded into the weights before and after. */
  readonly scale: number;
  readonly zero: number;
}

/** Operators that only move or compare values: they work on 8-bit values unchanged. */
const PASSING = new Set(['MaxPool', 'Resize', 'Relu']);
const MOVING = new Set([...PASSING, 'Concat']);

/**
 * ONNX Runtime's fast integer convolutions take multiples of 4 input channels, and give at least 16
 * (decision 0204).
 */
const INPUT_CHANNELS = 4;

/** Rewrites one graph. Nodes are emitted in the order of the input, which is topological. */
class Quantiser {
  readonly #graph: GraphProto;
  readonly #table: QuantisationTable;
  readonly #floats: (tensor: TensorProto) => Float32Array;
  readonly #initializers: Map<string, TensorProto>;
  readonly #consumers: ReadonlyMap<string, readonly NodeProto[]>;
  readonly #producers = new Map<string, NodeProto>();
  readonly #eight = new Map<string, Eight>();
  /** Tensors that exist as floats in the new graph. */
  readonly #float: Set<string>;
  readonly #nodes: NodeProto[] = [];
  #names = 0;

  constructor(graph: GraphProto, table: QuantisationTable, floats: (tensor: TensorProto) => Float32Array) {
    this.#graph = graph;
    this.#table = table;
    this.#floats = floats;
    this.#initializers = new Map(graph.initializer.map((tensor) => [tensor.name, tensor]));
    this.#float = new Set([...this.#initializers.keys(), ...graph.input.map((value) => value.name)]);
    this.#consumers = consumersOf(graph);
    for (const node of graph.node) for (const name of node.output) this.#producers.set(name, node);
  }

  run(): void {
    const fused = new Set<NodeProto>();
    const known = new Set(this.#graph.node.map((node) => node.name));
    for (const name of this.#table.float) {
      if (!known.has(name)) throw new RangeError(`the table names ${name}, which the network does not have`);
    }
    const made = new Set([
      ...this.#graph.input.map((value) => value.name),
      ...this.#graph.node.flatMap((node) => node.output),
    ]);
    for (const name of Object.keys(this.#table.tensors)) {
      if (!made.has(name)) throw new RangeError(`the table's tensor ${name} is none of the network's`);
    }
    for (const node of this.#graph.node) {
      if (fused.has(node)) continue;
      if (node.opType === 'Conv' && !this.#table.float.includes(node.name)) this.#conv(node, fused);
      else if (!this.#pass(node) && !this.#concat(node) && !this.#add(node)) this.#keep(node);
    }
    for (const { name } of this.#graph.output) this.#asFloat(name);
    this.#graph.node = this.#nodes;
  }

  #fresh(kind: string): string {
    this.#names += 1;
    return `int8/${this.#names}/${kind}`;
  }

  #constant(tensor: TensorProto): string {
    this.#graph.initializer.push(tensor);
    return tensor.name;
  }

  #scalar(value: number): string {
    return this.#constant(floatTensor(this.#fresh('scale'), [], Float32Array.of(value)));
  }

  #zero(value: number): string {
    return this.#constant(rawTensor(this.#fresh('zero'), UINT8, [], Uint8Array.of(value)));
  }

  #entry(name: string): TensorEntry {
    const entry = this.#table.tensors[name];
    if (!entry) throw new RangeError(`the table has no scale for the tensor ${name}`);
    return entry;
  }

  /** QuantizeLinear of a tensor whose per-channel scales are already folded into the weights. */
  #quantise(value: string, name: string, entry: TensorEntry, scales: Float64Array): Eight {
    const eight = { name: this.#fresh('u8'), scales, scale: entry.scale, zero: entry.zeroPoint };
    this.#nodes.push(
      newNode(
        'QuantizeLinear',
        [value, this.#scalar(entry.scale), this.#zero(entry.zeroPoint)],
        [eight.name],
      ),
    );
    this.#eight.set(name, eight);
    return eight;
  }

  /** The 8-bit form of a tensor; a float tensor is quantised per channel first. */
  #asEight(name: string): Eight {
    const known = this.#eight.get(name) ?? this.#movedAsEight(name);
    if (known) return known;
    const entry = this.#entry(name);
    const scales = scalesOf(entry, this.#channels(name));
    if (!entry.channels) return this.#quantise(name, name, entry, scales);
    const eight = { name: this.#fresh('u8'), scales, scale: entry.scale, zero: entry.zeroPoint };
    this.#nodes.push(
      newNode('QuantizeLinear', [name, ...this.#perChannel(scales, entry.zeroPoint)], [eight.name], {
        axis: 1,
      }),
    );
    this.#eight.set(name, eight);
    return eight;
  }

  /** The output of a node that works on 8-bit values unchanged, in 8-bit form. */
  #movedAsEight(name: string): Eight | undefined {
    const producer = this.#producers.get(name);
    if (!producer || this.#table.tensors[name] || !MOVING.has(producer.opType)) return undefined;
    for (const each of producer.opType === 'Concat' ? producer.input : producer.input.slice(0, 1))
      this.#asEight(each);
    const again = Object.assign(clone(NodeProtoSchema, producer), { name: '' });
    return this.#pass(again) || this.#concat(again) ? this.#eight.get(name) : undefined;
  }

  /** Number of channels of the output of a convolution or an addition, or of the image. */
  #channels(name: string): number {
    const producer = this.#producers.get(name);
    if (producer?.opType === 'Conv') {
      return Number(this.#initializers.get(producer.input[1] ?? '')?.dims[0] ?? Number.NaN);
    }
    if (producer) return this.#channels(producer.input[0] ?? '');
    const reader = this.#consumers.get(name)?.find(({ opType }) => opType === 'Conv');
    return Number(this.#initializers.get(reader?.input[1] ?? '')?.dims[1] ?? Number.NaN);
  }

  /** The tensor with the file's single scale, as ONNX Runtime's operators need it. */
  #dequantised(eight: Eight): string {
    const value = this.#fresh('f32');
    this.#nodes.push(
      newNode('DequantizeLinear', [eight.name, this.#scalar(eight.scale), this.#zero(eight.zero)], [value]),
    );
    return value;
  }

  /** Ensures that the tensor exists as floats, with its true values, under its own name. */
  #asFloat(name: string): void {
    const eight = this.#eight.get(name);
    if (!eight || this.#float.has(name)) return;
    this.#float.add(name);
    this.#nodes.push(
      newNode('DequantizeLinear', [eight.name, ...this.#perChannel(eight.scales, eight.zero)], [name], {
        axis: 1,
      }),
    );
  }

  /** Names of the per-channel scales and zero points. */
  #perChannel(scales: Float64Array, zero: number): [string, string] {
    const { length } = scales;
    const zeros = new Uint8Array(length).fill(zero);
    return [
      this.#constant(floatTensor(this.#fresh('scales'), [length], Float32Array.from(scales))),
      this.#constant(rawTensor(this.#fresh('zeros'), UINT8, [length], zeros)),
    ];
  }

  /** A node that stays in floats; Shape reads whichever form exists. */
  #keep(node: NodeProto): void {
    const [first = ''] = node.input;
    const eight = this.#eight.get(first);
    if (node.opType === 'Shape' && eight && !this.#float.has(first)) node.input = [eight.name];
    else for (const name of node.input) this.#asFloat(name);
    for (const name of node.output) this.#float.add(name);
    this.#nodes.push(node);
  }

  #pass(node: NodeProto): boolean {
    const [first = ''] = node.input;
    const [output = ''] = node.output;
    const eight = this.#eight.get(first);
    if (!eight || !PASSING.has(node.opType)) return false;
    // A ReLU that was not fused with its convolution: an 8-bit tensor with zero point 0 has no negative
    // values.
    if (node.opType === 'Relu') {
      if (eight.zero !== 0) return false;
      this.#eight.set(output, eight);
      return true;
    }
    const name = this.#fresh('u8');
    node.input = [eight.name, ...node.input.slice(1)];
    node.output = [name];
    this.#nodes.push(node);
    this.#eight.set(output, { ...eight, name });
    return true;
  }

  /** Concatenates 8-bit maps unchanged; channels keep their scales. */
  #concat(node: NodeProto): boolean {
    const parts = node.input.map((name) => this.#eight.get(name));
    if (node.opType !== 'Concat' || attribute(node, 'axis')?.i !== 1n) return false;
    const [first] = parts;
    if (!first || !parts.every((part) => part?.zero === first.zero)) return false;
    const known = parts.filter((part) => part !== undefined);
    const name = this.#fresh('u8');
    const [output = ''] = node.output;
    node.input = known.map((part) => part.name);
    node.output = [name];
    this.#nodes.push(node);
    const scales = Float64Array.from(known.flatMap((part) => [...part.scales]));
    this.#eight.set(output, {
      name,
      scales,
      scale: Math.max(...known.map((part) => part.scale)),
      zero: first.zero,
    });
    return true;
  }

  /** The sum of two maps whose per-channel scales are equal up to one factor. */
  #add(node: NodeProto): boolean {
    const [a, b] = node.input.map((name) => this.#eight.get(name));
    const [output = ''] = node.output;
    if (node.opType !== 'Add' || !a || !b || !this.#table.tensors[output]) return false;
    const entry = this.#entry(output);
    const scales = scalesOf(entry, a.scales.length);
    const alike = (eight: Eight) =>
      eight.scales.every((scale, c) => {
        const wanted = ((scales[c] ?? Number.NaN) / entry.scale) * eight.scale;
        return Math.abs(scale - wanted) <= 1e-6 * wanted;
      });
    if (!alike(a) || !alike(b))
      throw new RangeError(`the channels that ${output} adds are scaled differently`);
    const value = this.#fresh('f32');
    this.#nodes.push(newNode('Add', [this.#dequantised(a), this.#dequantised(b)], [value]));
    this.#quantise(value, output, entry, scales);
    return true;
  }

  /** Weights of a convolution as floats, and its bias, zeros where it has none. */
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
   * Pads input and weights of a convolution with zero channels to a multiple of INPUT_CHANNELS: such a
   * convolution reads its input in place; others first copy the neighbourhood of every pixel and store all
   * sums.
   */
  #inWholeGroups(
    input: Eight,
    weights: Float32Array,
    dims: readonly bigint[],
  ): { input: Eight; weights: Float32Array; dims: readonly bigint[] } {
    const [outputs = 0, inputs = 0, ...kernel] = dims.map(Number);
    const whole = Math.ceil(inputs / INPUT_CHANNELS) * INPUT_CHANNELS;
    if (whole === inputs) return { input, weights, dims };
    const scales = new Float64Array(whole).fill(input.scale);
    scales.set(input.scales);
    const padded = { ...input, name: this.#fresh('u8'), scales };
    const rank = kernel.length + 2;
    const ends = Array.from({ length: 2 * rank }, (_, at) => (at === rank + 1 ? BigInt(whole - inputs) : 0n));
    const pads = this.#constant(int64Tensor(this.#fresh('pads'), ends));
    this.#nodes.push(newNode('Pad', [input.name, pads, this.#zero(input.zero)], [padded.name]));
    const row = weights.length / outputs;
    const wider = new Float32Array((weights.length / inputs) * whole);
    for (let output = 0; output < outputs; output++) {
      wider.set(weights.subarray(output * row, (output + 1) * row), output * (row / inputs) * whole);
    }
    return { input: padded, weights: wider, dims: dims.with(1, BigInt(whole)) };
  }

  #conv(node: NodeProto, fused: Set<NodeProto>): void {
    const [inputName = ''] = node.input;
    let [outputName = ''] = node.output;
    const made = this.#weights(node);
    const { bias } = made;
    const outputs = bias.length;
    const { input, weights, dims } = this.#inWholeGroups(this.#asEight(inputName), made.weights, made.dims);
    const consumers = this.#consumers.get(outputName) ?? [];
    const [next] = consumers;
    // QuantizeLinear clips values below zero point 0, which is the ReLU.
    if (next && consumers.length === 1 && next.opType === 'Relu') {
      fused.add(next);
      outputName = next.output[0] ?? '';
    }
    const entry = this.#entry(outputName);
    if (fused.has(next as NodeProto) && entry.zeroPoint !== 0) {
      throw new RangeError(`${outputName} comes from a ReLU: its zero point must be 0`);
    }
    const steps = entry.steps;
    if (steps) {
      this.#stepped(node, input, outputName, entry, { ...steps, weights, bias, dims });
      return;
    }
    const scales = scalesOf(entry, outputs);
    const shifts = this.#table.bias[node.name];
    if (shifts && shifts.length !== outputs) {
      throw new RangeError(
        `the table has ${shifts.length} shifts for the ${outputs} channels of ${node.name}`,
      );
    }
    for (const [c, shift] of shifts?.entries() ?? []) {
      bias[c] = (bias[c] ?? Number.NaN) + (shift / BIAS_STEPS) * (scales[c] ?? Number.NaN);
    }
    const value = this.#emit(node, input, weights, bias, dims, scales, entry.scale);
    this.#quantise(value, outputName, entry, scales);
  }

  /**
   * A convolution with one output channel that needs a finer resolution than 8 bits. The channel is made
   * `count` times; each copy holds one part of the range, clipped to it, and their sum is the value. With 16
   * copies it costs less than a single channel would (INPUT_CHANNELS).
   */
  #stepped(
    node: NodeProto,
    input: Eight,
    outputName: string,
    entry: TensorEntry,
    made: { count: number; low: number; weights: Float32Array; bias: Float32Array; dims: readonly bigint[] },
  ): void {
    const { count, low, weights, bias, dims } = made;
    if (bias.length !== 1) throw new RangeError(`${node.name} has more than one output channel`);
    const copies = new Float32Array(weights.length * count);
    const shifted = new Float32Array(count);
    for (let copy = 0; copy < count; copy++) {
      copies.set(weights, copy * weights.length);
      shifted[copy] = (bias[0] ?? Number.NaN) - low - copy * 255 * entry.scale;
    }
    const scales = new Float64Array(count).fill(entry.scale);
    const value = this.#emit(
      node,
      input,
      copies,
      shifted,
      [BigInt(count), ...dims.slice(1)],
      scales,
      entry.scale,
    );
    const inner = `${outputName}/steps`;
    const eight = this.#quantise(value, inner, entry, scales);
    const ones = this.#constant(
      rawTensor(this.#fresh('ones'), UINT8, [1n, BigInt(count), 1n, 1n], new Uint8Array(count).fill(1)),
    );
    const sum = this.#fresh('i32');
    const above = this.#fresh('f32');
    this.#nodes.push(
      newNode('ConvInteger', [eight.name, ones], [sum]),
      newNode('DequantizeLinear', [sum, this.#scalar(entry.scale)], [above]),
      newNode('Add', [above, this.#scalar(low)], [outputName]),
    );
    this.#float.add(outputName);
  }

  /**
   * Emits DequantizeLinear of input, weights and bias, and the convolution of them. Returns the name of its
   * output.
   */
  #emit(
    node: NodeProto,
    input: Eight,
    weights: Float32Array,
    bias: Float32Array,
    dims: readonly bigint[],
    scales: Float64Array,
    scale: number,
  ): string {
    const made = quantiseConv(weights, bias, input.scales, scales, input.scale, scale);
    const outputs = bias.length;
    const data = ({ buffer, byteOffset, byteLength }: ArrayBufferView) =>
      new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
    const constant = (kind: string, type: number, shape: readonly bigint[], values: ArrayBufferView) =>
      this.#constant(rawTensor(this.#fresh(kind), type, shape, data(values)));
    const count = [BigInt(outputs)];
    const weightScales = constant('scales', FLOAT, count, made.weightScales);
    const biasScales = constant(
      'scales',
      FLOAT,
      count,
      made.weightScales.map((step) => step * input.scale),
    );
    const zeros = (type: number, bytes: number) =>
      constant('zeros', type, count, new Uint8Array(outputs * bytes));
    const weight = this.#fresh('f32');
    const shift = this.#fresh('f32');
    const value = this.#fresh('f32');
    this.#nodes.push(
      newNode(
        'DequantizeLinear',
        [constant('weights', INT8, dims, made.weights), weightScales, zeros(INT8, 1)],
        [weight],
        { axis: 0 },
      ),
      newNode(
        'DequantizeLinear',
        [constant('bias', INT32, count, made.bias), biasScales, zeros(INT32, 4)],
        [shift],
        {
          axis: 0,
        },
      ),
      Object.assign(clone(NodeProtoSchema, node), {
        input: [this.#dequantised(input), weight, shift],
        output: [value],
      }),
    );
    return value;
  }
}

/**
 * Rewrites a float32 network so that ONNX Runtime runs its convolutions on 8-bit integers with the scales of
 * `table` (decision 0204): QuantizeLinear and DequantizeLinear around every convolution and addition;
 * pooling, resizing and concatenation on 8-bit values; ReLU as the lower end of an 8-bit range. Inputs and
 * outputs stay float32. Modifies `graph`. Throws a RangeError if table and network do not match. @param
 * floats reads the values of a float tensor in any encoding into a new array
 */
export function quantise(
  graph: GraphProto,
  table: QuantisationTable,
  floats: (tensor: TensorProto) => Float32Array,
): void {
  new Quantiser(graph, table, floats).run();
}
