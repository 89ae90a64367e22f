import { attribute, INT8, INT32, UINT8 } from '../onnx/graph.ts';
import type { GraphProto, ModelProto, NodeProto, TensorProto } from '../onnx/onnx_pb.ts';
import { type ConvGeometry, convGeometry, enlargementOf, Unsupported, windowOf } from './geometry.ts';
import { importOperators } from './operator.ts';
import { CHUNK, LANES, pack } from './pack.ts';
import { type FloatsOf, GraphPartition } from './partition.ts';
import type { ConvSpec, ProgramWriter } from './program.ts';

/** Largest weight of 16 bits: 256 * 127 for the high byte, and what the low one adds. */
const WIDE_LIMIT = 256 * 127;

/** An 8-bit tensor: one quantisation level of channel c represents `scales[c]`. */
interface Quantised {
  readonly kind: 'quantised';
  readonly value: number;
  readonly scales: Float32Array;
  readonly zero: number;
}

/** How the program represents a float tensor of the network. */
type Source =
  | Quantised
  | { readonly kind: 'floats'; readonly value: number }
  | { readonly kind: 'concat'; readonly parts: readonly Source[] }
  /** 8-bit weights: one quantisation level of output channel c represents `scales[c]`. */
  | { readonly kind: 'weights'; readonly tensor: TensorProto; readonly scales: Float32Array }
  | { readonly kind: 'bias'; readonly values: Int32Array }
  /** Not computed until the scale and zero point of its 8-bit form are known. */
  | { readonly kind: 'conv'; readonly node: NodeProto }
  | { readonly kind: 'sum'; readonly a: Quantised; readonly b: Quantised }
  | { readonly kind: 'counted'; readonly value: number; readonly scale?: number };

interface Unscaled {
  readonly value: number;
  readonly zero: number;
}

const numbers = ({ rawData }: TensorProto): DataView =>
  new DataView(rawData.buffer, rawData.byteOffset, rawData.byteLength);

/** Converts the 8-bit part of a network to one program, and keeps the rest of the graph around it. */
class IntegerNetworkConverter {
  readonly #partition: GraphPartition;
  readonly #program: ProgramWriter;
  /** 8-bit tensors. */
  readonly #quantised = new Map<string, Unscaled>();
  readonly #sources = new Map<string, Source>();
  readonly #bytes = new Map<number, number>();

  constructor(graph: GraphProto, floatsOf: FloatsOf) {
    this.#partition = new GraphPartition(graph, floatsOf, 3);
    this.#program = this.#partition.program;
  }

  run(): void {
    for (const node of this.#partition.nodes) this.#node(node);
    if (this.#program.outputs === 0) throw new Unsupported('it has no 8-bit part');
    this.#partition.replaceNodes('IntegerNetwork');
  }

  /** The only number of a constant. */
  #scale(name: string | undefined): number {
    const values = this.#partition.floats(name);
    if (values.length !== 1) throw new Unsupported(`${name} is not one number`);
    return values[0] ?? Number.NaN;
  }

  /** The zero point of all channels. */
  #zero(name: string | undefined): number {
    const tensor = this.#partition.initializer(name);
    if (tensor.dataType !== UINT8) throw new Unsupported(`${name} is not of unsigned 8-bit numbers`);
    const [first = 0] = tensor.rawData;
    if (!tensor.rawData.every((each) => each === first)) throw new Unsupported(`${name} differs by channel`);
    return first;
  }

  #node(node: NodeProto): void {
    const done =
      node.domain === '' &&
      (this.#quantise(node) ||
        this.#dequantise(node) ||
        this.#steady(node) ||
        this.#count(node) ||
        this.#floats(node));
    if (!done) this.#keep(node);
  }

  #quantise(node: NodeProto): boolean {
    if (node.opType !== 'QuantizeLinear') return false;
    const [from = '', scaleName, zeroName] = node.input;
    const [to = ''] = node.output;
    const scale = this.#scale(scaleName);
    const zero = this.#zero(zeroName);
    const source = this.#sources.get(from);
    if (from === this.#partition.input) {
      const pad = this.#partition.onlyConsumer(to);
      const channels = pad?.opType === 'Pad' ? LANES / 4 : 3;
      const value = this.#program.input({ type: 'quantised', channels, zero }, scale);
      this.#quantised.set(to, { value, zero });
    } else if (source?.kind === 'conv') {
      this.#quantised.set(to, { value: this.#integerConv(source.node, scale, zero), zero });
    } else if (source?.kind === 'sum') {
      const { a, b } = source;
      const factor = (part: Quantised) => Math.fround((part.scales[0] ?? Number.NaN) / scale);
      const offset = Math.fround(zero - (factor(a) * a.zero + factor(b) * b.zero));
      const value = this.#program.add(a.value, b.value, zero, [factor(a), factor(b), offset]);
      this.#quantised.set(to, { value, zero });
    } else if (source?.kind === 'floats') {
      const { channels } = this.#program.spec(source.value);
      const value = this.#program.combine(
        [source.value],
        { type: 'quantised', channels, zero },
        false,
        scale,
      );
      this.#quantised.set(to, { value, zero });
    } else {
      throw new Unsupported(`${node.name} quantises what is not known`);
    }
    return true;
  }

  #dequantise(node: NodeProto): boolean {
    if (node.opType !== 'DequantizeLinear') return false;
    const [from = '', scaleName, zeroName] = node.input;
    const [to = ''] = node.output;
    const tensor = this.#partition.findInitializer(from);
    const scales = this.#partition.floats(scaleName);
    const quantised = this.#quantised.get(from);
    const counted = this.#sources.get(from);
    if (tensor?.dataType === INT8) {
      this.#sources.set(to, { kind: 'weights', tensor, scales });
    } else if (tensor?.dataType === INT32) {
      const view = numbers(tensor);
      const values = Int32Array.from({ length: view.byteLength / 4 }, (_, at) => view.getInt32(4 * at, true));
      this.#sources.set(to, { kind: 'bias', values });
    } else if (quantised) {
      if (this.#zero(zeroName) !== quantised.zero) throw new Unsupported(`${node.name} moves the zero point`);
      const { channels } = this.#program.spec(quantised.value);
      const each = scales.length === 1 ? new Float32Array(channels).fill(scales[0] ?? Number.NaN) : scales;
      this.#source(to, { kind: 'quantised', ...quantised, scales: each });
    } else if (counted?.kind === 'counted') {
      this.#sources.set(to, { ...counted, scale: scales[0] ?? Number.NaN });
    } else {
      throw new Unsupported(`${node.name} follows an unsupported node`);
    }
    return true;
  }

  /** Records a float tensor; one that is an output of the network is emitted at once. */
  #source(name: string, source: Source): void {
    this.#sources.set(name, source);
    if (this.#partition.outputs.has(name)) this.#outside(name);
  }

  /** Ensures that a float tensor exists outside the program. */
  #outside(name: string): void {
    const source = this.#sources.get(name);
    if (!source || this.#partition.hasProgramOutput(name)) return;
    if (source.kind === 'quantised')
      this.#partition.addProgramOutput(name, this.#program.output(source.value, source.scales));
    else if (source.kind === 'floats') {
      const { channels } = this.#program.spec(source.value);
      this.#partition.addProgramOutput(
        name,
        this.#program.output(source.value, new Float32Array(channels).fill(1)),
      );
    } else throw new Unsupported(`${name} is needed outside the 8-bit part`);
  }

  /** Operators that work on 8-bit values unchanged. */
  #steady(node: NodeProto): boolean {
    const inputs = node.input.map((name) => this.#quantised.get(name));
    const [first] = inputs;
    const [to = ''] = node.output;
    if (!first) return false;
    const set = (value: number) => this.#quantised.set(to, { value, zero: first.zero });
    switch (node.opType) {
      case 'Pad': {
        if (this.#program.spec(first.value).channels !== LANES / 4) {
          throw new Unsupported(`${node.name} adds channels`);
        }
        set(first.value);
        return true;
      }
      case 'MaxPool': {
        const [kernel, stride, roundUp] = windowOf(node);
        set(this.#program.maxPool(first.value, kernel, stride, roundUp));
        return true;
      }
      case 'Resize':
        set(this.#program.resize(first.value, this.#enlargement(node)));
        return true;
      case 'Concat': {
        if (attribute(node, 'axis')?.i !== 1n) return false;
        set(
          this.#program.concat(
            inputs.map((each) => {
              if (!each) throw new Unsupported(`${node.name} concatenates maps that are not 8-bit`);
              return each.value;
            }),
          ),
        );
        return true;
      }
      default:
        return false;
    }
  }

  /** The sum of 8-bit channels as a float map: a value with a finer resolution than 8 bits. */
  #count(node: NodeProto): boolean {
    const [first = '', second = ''] = node.input;
    const [to = ''] = node.output;
    if (node.opType === 'ConvInteger') {
      const quantised = this.#quantised.get(first);
      const ones = this.#partition.initializer(second);
      if (quantised?.zero !== 0 || ones.dims[0] !== 1n || !ones.rawData.every((each) => each === 1)) {
        throw new Unsupported(`${node.name} is no plain sum`);
      }
      this.#sources.set(to, { kind: 'counted', value: quantised.value });
      return true;
    }
    const source = this.#sources.get(first);
    if (node.opType !== 'Add' || source?.kind !== 'counted' || source.scale === undefined) return false;
    this.#partition.addProgramOutput(
      to,
      this.#program.sumOutput(source.value, source.scale, this.#scale(second)),
    );
    return true;
  }

  /** Operators on float values. */
  #floats(node: NodeProto): boolean {
    const [first = '', second = ''] = node.input;
    const [to = ''] = node.output;
    const a = this.#sources.get(first);
    const b = this.#sources.get(second);
    if (!a) return false;
    if (node.opType === 'Conv') {
      if (b?.kind === 'weights') this.#sources.set(to, { kind: 'conv', node });
      else this.#floatConv(node, a);
      return true;
    }
    // Fused with the convolution before it.
    if (node.opType === 'Relu' && this.#partition.reluAfter(first) === node && a.kind === 'floats') {
      this.#source(to, a);
      return true;
    }
    if (node.opType === 'Add' && a.kind === 'quantised' && b?.kind === 'quantised') {
      this.#sources.set(to, { kind: 'sum', a, b });
      return true;
    }
    if (node.opType === 'Add' && a.kind === 'floats' && b?.kind === 'floats') {
      const spec = this.#program.spec(a.value);
      this.#source(to, { kind: 'floats', value: this.#program.combine([a.value, b.value], spec, false) });
      return true;
    }
    if (node.opType === 'Resize' && a.kind === 'floats') {
      this.#source(to, { kind: 'floats', value: this.#program.resize(a.value, this.#enlargement(node)) });
      return true;
    }
    if (node.opType === 'Concat' && attribute(node, 'axis')?.i === 1n) {
      const parts = node.input.map((name) => {
        const part = this.#sources.get(name);
        if (part?.kind !== 'quantised' && part?.kind !== 'floats') {
          throw new Unsupported(`${node.name} joins what is not known`);
        }
        return part;
      });
      this.#source(to, { kind: 'concat', parts });
      return true;
    }
    return false;
  }

  /** A node that stays outside the program. */
  #keep(node: NodeProto): void {
    for (const name of node.input) this.#outside(name);
    this.#partition.keep(node);
  }

  /** By how much a Resize enlarges. */
  #enlargement(node: NodeProto): number {
    return enlargementOf(node, this.#partition.floats(node.input[2]));
  }

  /** A convolution between 8-bit tensors. */
  #integerConv(node: NodeProto, outputScale: number, outputZero: number): number {
    const [input, weights, bias] = node.input.map((name) => this.#sources.get(name));
    if (input?.kind !== 'quantised' || weights?.kind !== 'weights' || (bias && bias.kind !== 'bias')) {
      throw new Unsupported(`${node.name} is no 8-bit convolution`);
    }
    const shape = alignedGeometry(node, weights.tensor.dims);
    const { outputs, channels } = shape;
    const { rawData } = weights.tensor;
    const bytes = new Int8Array(rawData.buffer, rawData.byteOffset, rawData.byteLength);
    const row = bytes.length / outputs;
    const shifted = Int32Array.from({ length: outputs }, (_, c) => {
      let sum = 0;
      for (let i = c * row; i < (c + 1) * row; i++) sum += bytes[i] as number;
      return (bias?.values[c] ?? 0) - input.zero * sum;
    });
    const inputScale = input.scales[0] ?? Number.NaN;
    const scales = weights.scales.map((scale) => Math.fround(Math.fround(inputScale * scale) / outputScale));
    const conv: ConvSpec = {
      ...shape,
      channel: 0,
      relu: false,
      panels: 1,
      weights: pack([bytes], outputs, channels, shape),
      bias: shifted,
      scales,
    };
    return this.#program.conv(input.value, { type: 'quantised', channels: outputs, zero: outputZero }, conv);
  }

  /** A convolution with 16-bit weights, of 8-bit tensors or of floats converted to 16 bits. */
  #floatConv(node: NodeProto, source: Source): void {
    const [, weightName, biasName] = node.input;
    const [to = ''] = node.output;
    const tensor = this.#partition.initializer(weightName);
    const weights = this.#partition.floats(weightName);
    const shape = alignedGeometry(node, tensor.dims);
    const bias = biasName ? this.#partition.floats(biasName) : new Float32Array(shape.outputs);
    const relu = this.#partition.reluAfter(to) !== undefined;
    const parts = source.kind === 'concat' ? source.parts : [source];
    const spec = { type: 'floats', channels: shape.outputs, zero: 0 } as const;
    const sums: number[] = [];
    const alone = parts.length === 1 && parts[0]?.kind === 'quantised';
    let from = 0;
    let biased = bias.every((each) => each === 0);
    for (const part of parts) {
      if (part.kind !== 'quantised' && part.kind !== 'floats')
        throw new Unsupported(`${node.name} reads too much`);
      const own = this.#program.spec(part.value).channels;
      const columns = { weights, from, of: shape.channels, own, ...shape };
      if (part.kind === 'quantised') {
        const conv = wideConv(columns, part.scales, part.zero, biased ? undefined : bias);
        biased = true;
        sums.push(this.#program.conv(part.value, spec, { ...conv, relu: relu && alone }));
      } else {
        const ones = new Float32Array(own).fill(1);
        // The kernels read neighbouring taps together; those of half of the channels are not adjacent.
        if (shape.dilation === 1 && shape.kernel[1] > 1 && own % CHUNK !== 0) {
          throw new Unsupported(`${node.name} reads ${own} channels of floats`);
        }
        const bytes = this.#bytesOf(part.value);
        for (const channel of [0, own]) {
          const conv = wideConv(columns, ones, 0, undefined);
          sums.push(this.#program.conv(bytes, spec, { ...conv, channel, relu: false }));
        }
      }
      from += own;
    }
    if (from !== shape.channels || !biased) throw new Unsupported(`${node.name} reads floats alone`);
    const value = alone ? (sums[0] ?? 0) : this.#program.combine(sums, spec, relu);
    this.#source(to, { kind: 'floats', value });
  }

  #bytesOf(value: number): number {
    const known = this.#bytes.get(value) ?? this.#program.splitBytes(value);
    this.#bytes.set(value, known);
    return known;
  }
}

/** The shape of a convolution, whose outputs are whole groups of 16 channels. */
function alignedGeometry(node: NodeProto, dims: readonly bigint[]): ConvGeometry {
  const geometry = convGeometry(node, dims);
  if (geometry.outputs % LANES !== 0 || geometry.channels % 4 !== 0) {
    throw new Unsupported(`${node.name} is a convolution of another number of channels`);
  }
  return geometry;
}

interface Columns {
  /** [outputs, of, height, width] */
  readonly weights: Float32Array;
  /** The input channels that are read: `own` of them from `from` on. */
  readonly from: number;
  readonly of: number;
  readonly own: number;
  readonly outputs: number;
  readonly kernel: readonly [number, number];
  readonly stride: number;
  readonly dilation: number;
  readonly pads: readonly [number, number, number, number];
}

/** A convolution with 16-bit weights, which include the input's per-channel scales. */
function wideConv(
  columns: Columns,
  scales: Float32Array,
  zero: number,
  bias: Float32Array | undefined,
): Omit<ConvSpec, 'relu'> {
  const { weights, from, of, own, outputs, kernel, stride, dilation, pads } = columns;
  const taps = kernel[0] * kernel[1];
  const count = own * taps;
  const highBytes = new Int8Array(outputs * count);
  const lowBytes = new Int8Array(outputs * count);
  const weightScales = new Float32Array(outputs);
  const shifts = new Int32Array(outputs);
  const row = new Float64Array(count);
  for (let output = 0; output < outputs; output++) {
    let largest = 0;
    const first = (output * of + from) * taps;
    for (let c = 0, i = 0; c < own; c++) {
      const scale = scales[c] as number;
      for (const end = i + taps; i < end; i++) {
        const value = (weights[first + i] as number) * scale;
        row[i] = value;
        if (value > largest) largest = value;
        else if (-value > largest) largest = -value;
      }
    }
    const wanted = bias?.[output] ?? 0;
    // In a channel with (almost) no weights the scale must still let the bias fit 32 bits.
    const weightScale = Math.fround(Math.max(largest / WIDE_LIMIT, Math.abs(wanted) / 2 ** 29, 1e-30));
    let sum = 0;
    const at = output * count;
    for (let i = 0; i < count; i++) {
      // The magnitude is at most WIDE_LIMIT: rounding of the scale itself is far below half a level.
      const units = Math.floor((row[i] as number) / weightScale + 0.5) | 0;
      const high = (units + 128) >> 8;
      highBytes[at + i] = high;
      lowBytes[at + i] = units - (high << 8);
      sum += units;
    }
    weightScales[output] = weightScale;
    const shift = Math.round(wanted / weightScale) - zero * sum;
    if (Math.abs(shift) > 2 ** 30) throw new Unsupported('a bias is too large for 32 bits');
    shifts[output] = shift;
  }
  return {
    channel: 0,
    channels: own,
    kernel,
    stride,
    dilation,
    pads,
    panels: 2,
    weights: pack([highBytes, lowBytes], outputs, own, { kernel, dilation }),
    bias: shifts,
    scales: weightScales,
  };
}

/**
 * Replaces the 8-bit part of a network that `quantise` rewrote by one node of the operator `IntegerNetwork`
 * (native/low_precision); that part must be the only consumer of the network's input. Changes `model`. Throws a RangeError, and
 * leaves the model unchanged, if the operator does not support something in the network.
 * @param floats returns the values of a float tensor in any encoding
 */
export function asIntegerNetwork(model: ModelProto, floats: FloatsOf): void {
  const { graph } = model;
  if (!graph) throw new RangeError('the file has no graph');
  new IntegerNetworkConverter(graph, floats).run();
  importOperators(model);
}
