import { columnsOf } from '../matrix.ts';
import { attribute } from '../onnx/graph.ts';
import type { FloatsOf } from '../onnx/half.ts';
import type { GraphProto, NodeProto } from '../onnx/onnx_pb.ts';
import { type QuantisedConv, quantiseTo16Bits } from '../quantise/arithmetic.ts';
import { type QuantisedTensor, quantise, type Step, type Target } from '../quantise/quantise.ts';
import type { QuantisationTable } from '../quantise/table.ts';
import { type ConvGeometry, convGeometry, enlargementOf, Unsupported, windowOf } from './geometry.ts';
import { CHUNK, LANES, pack } from './pack.ts';
import { GraphPartition } from './partition.ts';
import type { ProgramWriter, ValueSpec } from './program.ts';

/** Channels of an image, and those that are read: the kernels read four at a time. */
const IMAGE = { channels: 3, read: 4 };

type Tensor = QuantisedTensor<number>;

/** Channels of a tensor of floats as the program has them: a value of floats, or one of 8 bits with a scale per channel. */
interface Part {
  readonly value: number;
  /** Ones for a value of floats. */
  readonly scales: Float32Array;
}

/** Writes the 8-bit part of a network as one program, and keeps the rest of the graph around it. */
class IntegerNetwork implements Target<number> {
  readonly partition: GraphPartition;
  readonly #program: ProgramWriter;
  /** Tensors of floats of the network; one that is concatenated has several parts. */
  readonly #tensors = new Map<string, readonly Part[]>();
  /** Tensors of floats that a ReLU behind them has been made part of. */
  readonly #rectified = new Set<string>();
  /** High and low bytes of values of floats. */
  readonly #bytes = new Map<number, number>();

  constructor(graph: GraphProto, floatsOf: FloatsOf) {
    this.partition = new GraphPartition(graph, floatsOf, IMAGE.channels);
    this.#program = this.partition.program;
  }

  quantise(name: string, { scale, zeroPoint: zero }: Step, scales: Float64Array | undefined): number {
    if (scales) throw new Unsupported(`${name} is quantised channel by channel`);
    const spec = (channels: number) => ({ type: 'quantised', channels, zero }) as const;
    if (name === this.partition.input) return this.#program.input(spec(IMAGE.read), Math.fround(scale));
    const floats = this.#floatsOf(name);
    if (floats === undefined) throw new Unsupported(`${name} is not known where it is quantised`);
    const { channels } = this.#program.spec(floats);
    return this.#program.combine([floats], spec(channels), false, Math.fround(scale));
  }

  conv(
    node: NodeProto,
    { value, zeroPoint, scale }: Tensor,
    { weights, weightScales, bias }: QuantisedConv,
    dims: readonly bigint[],
    output: Step,
  ): number {
    const shape = alignedGeometry(node, dims);
    const row = weights.length / shape.outputs;
    const shifted = bias.map((each, c) => {
      let sum = 0;
      for (let i = c * row; i < (c + 1) * row; i++) sum += weights[i] as number;
      return each - zeroPoint * sum;
    });
    const [inputScale, outputScale] = [Math.fround(scale), Math.fround(output.scale)];
    const scales = weightScales.map((each) => Math.fround(Math.fround(inputScale * each) / outputScale));
    return this.#program.conv(
      value,
      { type: 'quantised', channels: shape.outputs, zero: output.zeroPoint },
      {
        ...{ ...shape, channel: 0, relu: false, panels: 1, bias: shifted, scales },
        weights: pack([weights], shape.outputs, shape.channels, shape),
      },
    );
  }

  add(a: Tensor, b: Tensor, { scale, zeroPoint }: Step): number {
    const factor = (part: Step) => Math.fround(Math.fround(part.scale) / Math.fround(scale));
    const offset = Math.fround(zeroPoint - (factor(a) * a.zeroPoint + factor(b) * b.zeroPoint));
    return this.#program.add(a.value, b.value, zeroPoint, [factor(a), factor(b), offset]);
  }

  move(node: NodeProto, inputs: readonly Tensor[]): number {
    const [first] = inputs;
    if (!first) throw new Unsupported(`${node.name} reads nothing`);
    if (node.opType === 'MaxPool') return this.#program.maxPool(first.value, ...windowOf(node));
    if (node.opType === 'Resize') return this.#resize(node, first.value);
    for (const input of inputs) this.#checkChannels(input);
    return this.#program.concat(inputs.map(({ value }) => value));
  }

  #resize(node: NodeProto, value: number): number {
    return this.#program.resize(value, enlargementOf(node, this.partition.floats(node.input[2])));
  }

  pad({ value }: Tensor, channels: number): number {
    if (this.#program.spec(value).channels !== channels)
      throw new Unsupported('it has maps of odd numbers of channels');
    return value;
  }

  dequantise(tensor: Tensor, name: string): void {
    this.#checkChannels(tensor);
    this.#set(name, [{ value: tensor.value, scales: Float32Array.from(tensor.scales) }]);
  }

  /** Throws Unsupported for a value that has more channels than the network's tensor. */
  #checkChannels({ value, scales }: Tensor): void {
    if (this.#program.spec(value).channels !== scales.length)
      throw new Unsupported('the image is used as a map');
  }

  sum(value: number, _channels: number, scale: number, low: number, name: string): void {
    if (this.#program.spec(value).zero !== 0) throw new Unsupported(`${name} is no plain sum`);
    this.partition.addProgramOutput(name, this.#program.sumOutput(value, scale, low));
  }

  keep(node: NodeProto): void {
    if (node.domain === '' && this.#floats(node)) return;
    for (const name of node.input) this.#giveOut(name);
    this.partition.keep(node);
  }

  /** Records a tensor of floats; one that is an output of the network is given out at once. */
  #set(name: string, parts: readonly Part[]): void {
    this.#tensors.set(name, parts);
    if (this.partition.outputs.has(name)) this.#giveOut(name);
  }

  #setFloats(name: string, value: number): void {
    this.#set(name, [{ value, scales: new Float32Array(this.#program.spec(value).channels).fill(1) }]);
  }

  /** Returns the value of floats that is a tensor; undefined for another one. */
  #floatsOf(name: string): number | undefined {
    const [part, another] = this.#tensors.get(name) ?? [];
    return part && !another && !this.#isBytes(part) ? part.value : undefined;
  }

  #isBytes({ value }: Part): boolean {
    return this.#program.spec(value).type === 'quantised';
  }

  /** Ensures that a tensor of floats exists outside the program. */
  #giveOut(name: string): void {
    const [part, another] = this.#tensors.get(name) ?? [];
    if (!part || this.partition.hasProgramOutput(name)) return;
    if (another) throw new Unsupported(`${name} is needed outside the 8-bit part`);
    this.partition.addProgramOutput(name, this.#program.output(part.value, part.scales));
  }

  /** Computes a node on floats in the program; false where it cannot. */
  #floats(node: NodeProto): boolean {
    const [[first = '', second = ''], [to = '']] = [node.input, node.output];
    const parts = this.#tensors.get(first);
    const [a, b] = [this.#floatsOf(first), this.#floatsOf(second)];
    if (!parts) return false;
    if (node.opType === 'Conv') this.#floatConv(node, parts, to);
    else if (node.opType === 'Concat' && attribute(node, 'axis')?.i === 1n) {
      const joined = node.input.map((name) => this.#tensors.get(name));
      if (joined.includes(undefined)) throw new Unsupported(`${node.name} joins what is not known`);
      this.#set(
        to,
        joined.flatMap((each) => each ?? []),
      );
    } else if (a === undefined) return false;
    else if (node.opType === 'Relu' && this.#rectified.has(first)) this.#set(to, parts);
    else if (node.opType === 'Resize') this.#setFloats(to, this.#resize(node, a));
    else if (node.opType !== 'Add' || b === undefined) return false;
    else this.#setFloats(to, this.#program.combine([a, b], this.#program.spec(a), this.#takesRelu(to)));
    return true;
  }

  /** Whether a ReLU is all that reads a tensor: it is then computed with what makes the tensor. */
  #takesRelu(name: string): boolean {
    const takes = this.partition.reluAfter(name) !== undefined;
    if (takes) this.#rectified.add(name);
    return takes;
  }

  /** Adds a convolution with 16-bit weights, of 8-bit tensors or of floats converted to 16 bits. */
  #floatConv(node: NodeProto, parts: readonly Part[], to: string): void {
    const [, weightName, biasName] = node.input;
    const shape = alignedGeometry(node, this.partition.initializer(weightName).dims);
    const { outputs, channels, kernel, dilation } = shape;
    const taps = kernel[0] * kernel[1];
    const values = this.partition.floats(weightName);
    const none = new Float32Array(outputs);
    const bias = biasName ? this.partition.floats(biasName) : none;
    // Floats are read twice, so a part of 8 bits has the bias.
    const biased = parts.find((part) => this.#isBytes(part));
    if (!biased && bias.some((each) => each !== 0)) throw new Unsupported(`${node.name} reads floats alone`);
    const relu = this.#takesRelu(to);
    const alone = biased !== undefined && parts.length === 1;
    const spec: ValueSpec = { type: 'floats', channels: outputs, zero: 0 };
    let first = 0;
    const sums = parts.flatMap((part) => {
      const { channels: count, zero } = this.#program.spec(part.value);
      const own = columnsOf(
        { rows: outputs, columns: channels * taps, values },
        first * taps,
        (first + count) * taps,
      );
      first += count;
      const { high, low, ...made } = quantiseTo16Bits(
        own.values,
        part === biased ? bias : none,
        part.scales,
        zero,
      );
      const conv = (value: number, channel: number) =>
        this.#program.conv(value, spec, {
          ...{ ...shape, ...made, channel, channels: count, relu: relu && alone, panels: 2 },
          weights: pack([high, low], outputs, count, shape),
        });
      if (this.#isBytes(part)) return [conv(part.value, 0)];
      // The kernels read neighbouring taps together; those of half of the channels are not adjacent.
      if (dilation === 1 && kernel[1] > 1 && count % CHUNK !== 0)
        throw new Unsupported(`${node.name} reads ${count} channels of floats`);
      const bytes = this.#bytesOf(part.value);
      return [conv(bytes, 0), conv(bytes, count)];
    });
    if (first !== channels) throw new Unsupported(`${node.name} reads another number of channels`);
    const [only = 0] = sums;
    this.#setFloats(to, alone ? only : this.#program.combine(sums, spec, relu));
  }

  /** Returns the high bytes and the low ones of a map of floats. */
  #bytesOf(value: number): number {
    const bytes = this.#bytes.get(value) ?? this.#program.splitBytes(value);
    this.#bytes.set(value, bytes);
    return bytes;
  }
}

/** Returns the shape of a convolution, whose outputs are whole groups of 16 channels. */
function alignedGeometry(node: NodeProto, dims: readonly bigint[]): ConvGeometry {
  const geometry = convGeometry(node, dims);
  if (geometry.outputs % LANES !== 0 || geometry.channels % 4 !== 0) {
    throw new Unsupported(`${node.name} is a convolution of another number of channels`);
  }
  return geometry;
}

/**
 * Replaces what `table` quantises of a float network by one node of the operator `IntegerNetwork` (native/low_precision),
 * and returns its program; that part must be the only consumer of the network's input. Throws a RangeError, and leaves the
 * graph unchanged, if table and network do not match or the operator does not support something in the network.
 */
export function makeIntegerNetwork(
  graph: GraphProto,
  table: QuantisationTable,
  floats: FloatsOf,
): ProgramWriter {
  const { partition } = quantise(graph, table, floats, new IntegerNetwork(graph, floats));
  return partition.replaceNodes('IntegerNetwork');
}
