import { attribute } from '../onnx/graph.ts';
import type { GraphProto, ModelProto, NodeProto } from '../onnx/onnx_pb.ts';
import { type QuantisedConv, quantiseTo16Bits } from '../quantise/arithmetic.ts';
import { type QuantisedTensor, quantise, type Step, type Target } from '../quantise/quantise.ts';
import type { QuantisationTable } from '../quantise/table.ts';
import { type ConvGeometry, convGeometry, enlargementOf, Unsupported, windowOf } from './geometry.ts';
import { importOperators } from './operator.ts';
import { CHUNK, LANES, pack } from './pack.ts';
import { type FloatsOf, GraphPartition } from './partition.ts';
import type { ProgramWriter, ValueSpec } from './program.ts';

/** Channels of an image, and those that are read: the kernels read four at a time. */
const IMAGE = { channels: 3, read: 4 };

/** A value of the program and how it is written, which waits until it is known whether anything needs it. */
interface Operation {
  readonly spec: ValueSpec;
  readonly inputs: readonly Operation[];
  readonly write: (program: ProgramWriter, inputs: number[]) => number;
}

/** A tensor of floats of the network as the program has it. */
type Source =
  | { readonly kind: 'quantised'; readonly value: Operation; readonly scales: Float32Array }
  | { readonly kind: 'floats'; readonly value: Operation }
  | { readonly kind: 'sum'; readonly value: Operation; readonly scale: number; readonly low: number }
  | { readonly kind: 'concat'; readonly parts: readonly Source[] };

/** What is done in turn: an operation of the program, an output of it, or a node outside it. */
type Planned = Operation | { readonly output: string } | { readonly node: NodeProto };

/** Writes the 8-bit part of a network as one program, and keeps the rest of the graph around it. */
class IntegerNetwork implements Target<Operation> {
  readonly #partition: GraphPartition;
  readonly #plan: Planned[] = [];
  readonly #sources = new Map<string, Source>();
  /** Tensors of floats that a ReLU behind them has been made part of. */
  readonly #rectified = new Set<string>();
  readonly #bytes = new Map<Operation, Operation>();

  constructor(graph: GraphProto, floatsOf: FloatsOf) {
    this.#partition = new GraphPartition(graph, floatsOf, IMAGE.channels);
  }

  #operation(spec: ValueSpec, inputs: readonly Operation[], write: Operation['write']): Operation {
    const operation = { spec, inputs, write };
    this.#plan.push(operation);
    return operation;
  }

  quantise(name: string, step: Step, scales: Float64Array | undefined): Operation {
    if (scales) throw new Unsupported(`${name} is quantised channel by channel`);
    const { zero } = step;
    const scale = Math.fround(step.scale);
    if (name === this.#partition.input) {
      const spec = { type: 'quantised', channels: IMAGE.read, zero } as const;
      return this.#operation(spec, [], (program) => program.input(spec, scale));
    }
    const source = this.#sources.get(name);
    if (source?.kind !== 'floats') throw new Unsupported(`${name} is not known where it is quantised`);
    const spec = { type: 'quantised', channels: source.value.spec.channels, zero } as const;
    return this.#operation(spec, [source.value], (program, inputs) =>
      program.combine(inputs, spec, false, scale),
    );
  }

  conv(
    node: NodeProto,
    { value, zero, scale }: QuantisedTensor<Operation>,
    { weights, weightScales, bias }: QuantisedConv,
    dims: readonly bigint[],
    output: Step,
  ): Operation {
    const shape = alignedGeometry(node, dims);
    const row = weights.length / shape.outputs;
    const shifted = bias.map((each, c) => {
      let sum = 0;
      for (let i = c * row; i < (c + 1) * row; i++) sum += weights[i] as number;
      return each - zero * sum;
    });
    const [inputScale, outputScale] = [Math.fround(scale), Math.fround(output.scale)];
    const scales = weightScales.map((each) => Math.fround(Math.fround(inputScale * each) / outputScale));
    const spec = { type: 'quantised', channels: shape.outputs, zero: output.zero } as const;
    return this.#operation(spec, [value], (program, [from = 0]) =>
      program.conv(from, spec, {
        ...{ ...shape, channel: 0, relu: false, panels: 1, bias: shifted, scales },
        weights: pack([weights], shape.outputs, shape.channels, shape),
      }),
    );
  }

  add(a: QuantisedTensor<Operation>, b: QuantisedTensor<Operation>, { scale, zero }: Step): Operation {
    const factor = (part: Step) => Math.fround(Math.fround(part.scale) / Math.fround(scale));
    const offset = Math.fround(zero - (factor(a) * a.zero + factor(b) * b.zero));
    return this.#operation(
      { ...a.value.spec, zero },
      [a.value, b.value],
      (program, [first = 0, second = 0]) => program.add(first, second, zero, [factor(a), factor(b), offset]),
    );
  }

  move(node: NodeProto, inputs: readonly QuantisedTensor<Operation>[]): Operation {
    const values = inputs.map(({ value }) => value);
    const [first] = values;
    if (!first) throw new Unsupported(`${node.name} reads nothing`);
    if (node.opType === 'Concat') {
      for (const input of inputs) wholeChannels(input);
      const channels = values.reduce((sum, { spec }) => sum + spec.channels, 0);
      return this.#operation({ ...first.spec, channels }, values, (program, all) => program.concat(all));
    }
    if (node.opType === 'MaxPool') {
      const window = windowOf(node);
      return this.#operation(first.spec, values, (program, [from = 0]) => program.maxPool(from, ...window));
    }
    return this.#resize(node, first);
  }

  #resize(node: NodeProto, value: Operation): Operation {
    const factor = enlargementOf(node, this.#partition.floats(node.input[2]));
    return this.#operation(value.spec, [value], (program, [from = 0]) => program.resize(from, factor));
  }

  pad({ value }: QuantisedTensor<Operation>, channels: number): Operation {
    if (value.spec.channels !== channels) throw new Unsupported('it has maps of odd numbers of channels');
    return value;
  }

  dequantise(tensor: QuantisedTensor<Operation>, name: string): void {
    wholeChannels(tensor);
    const scales = Float32Array.from(tensor.scales);
    this.#source(name, { kind: 'quantised', value: tensor.value, scales });
  }

  sum(value: Operation, _channels: number, scale: number, low: number, name: string): void {
    if (value.spec.zero !== 0) throw new Unsupported(`${name} is no plain sum`);
    this.#sources.set(name, { kind: 'sum', value, scale, low });
    this.#plan.push({ output: name });
  }

  /** Records a tensor of floats; one that is an output of the network is given out at once. */
  #source(name: string, source: Source): void {
    this.#sources.set(name, source);
    if (this.#partition.outputs.has(name)) this.#plan.push({ output: name });
  }

  keep(node: NodeProto, shaped?: QuantisedTensor<Operation>): void {
    if (shaped) this.dequantise(shaped, node.input[0] ?? '');
    if (node.domain !== '' || !this.#floats(node)) this.#plan.push({ node });
  }

  /** Computes a node on floats in the program; false where it cannot. */
  #floats(node: NodeProto): boolean {
    const [[first = '', second = ''], [to = '']] = [node.input, node.output];
    const a = this.#sources.get(first);
    if (!a || a.kind === 'sum') return false;
    if (node.opType === 'Conv') this.#floatConv(node, a);
    else if (node.opType === 'Concat' && attribute(node, 'axis')?.i === 1n) {
      const parts = node.input.flatMap((name) => this.#sources.get(name) ?? []);
      if (parts.length < node.input.length) throw new Unsupported(`${node.name} joins what is not known`);
      this.#source(to, { kind: 'concat', parts });
    } else if (a.kind !== 'floats') return false;
    else if (node.opType === 'Relu' && this.#rectified.has(first)) this.#source(to, a);
    else if (node.opType === 'Resize')
      this.#source(to, { kind: 'floats', value: this.#resize(node, a.value) });
    else {
      const b = this.#sources.get(second);
      if (node.opType !== 'Add' || b?.kind !== 'floats') return false;
      const value = this.#sumOfFloats([a.value, b.value], a.value.spec, this.#takesRelu(to));
      this.#source(to, { kind: 'floats', value });
    }
    return true;
  }

  /** Whether a ReLU is all that reads a tensor: it is then computed with what makes the tensor. */
  #takesRelu(name: string): boolean {
    const takes = this.#partition.reluAfter(name) !== undefined;
    if (takes) this.#rectified.add(name);
    return takes;
  }

  #sumOfFloats(values: readonly Operation[], spec: ValueSpec, relu: boolean): Operation {
    return this.#operation(spec, values, (program, inputs) => program.combine(inputs, spec, relu));
  }

  /** Adds a convolution with 16-bit weights, of 8-bit tensors or of floats converted to 16 bits. */
  #floatConv(node: NodeProto, source: Source): void {
    const [, weightName, biasName] = node.input;
    const [to = ''] = node.output;
    const shape = alignedGeometry(node, this.#partition.initializer(weightName).dims);
    const { outputs, channels, kernel, dilation } = shape;
    const weights = this.#partition.floats(weightName);
    const all = { weights, outputs, channels, taps: kernel[0] * kernel[1] };
    const relu = this.#takesRelu(to);
    const spec = { type: 'floats', channels: outputs, zero: 0 } as const;
    const parts = source.kind === 'concat' ? source.parts : [source];
    const alone = parts.length === 1 && parts[0]?.kind === 'quantised';
    // The first part of 8 bits has the bias.
    let bias = biasName ? this.#partition.floats(biasName) : undefined;
    if (bias?.every((each) => each === 0)) bias = undefined;
    let first = 0;
    const sums = parts.flatMap((part) => {
      if (part.kind !== 'quantised' && part.kind !== 'floats')
        throw new Unsupported(`${node.name} reads too much`);
      const { channels: count, zero } = part.value.spec;
      const scales = part.kind === 'quantised' ? part.scales : new Float32Array(count).fill(1);
      const made = quantiseTo16Bits(
        { ...all, first, count },
        scales,
        zero,
        part.kind === 'quantised' ? bias : undefined,
      );
      first += count;
      const conv = (value: Operation, channel: number) =>
        this.#operation(spec, [value], (program, [from = 0]) =>
          program.conv(from, spec, {
            ...{ ...shape, ...made, channel, channels: count, relu: relu && alone, panels: 2 },
            weights: pack([made.high, made.low], outputs, count, shape),
          }),
        );
      if (part.kind === 'quantised') {
        bias = undefined;
        return [conv(part.value, 0)];
      }
      // The kernels read neighbouring taps together; those of half of the channels are not adjacent.
      if (dilation === 1 && kernel[1] > 1 && count % CHUNK !== 0) {
        throw new Unsupported(`${node.name} reads ${count} channels of floats`);
      }
      const bytes = this.#bytesOf(part.value);
      return [conv(bytes, 0), conv(bytes, count)];
    });
    if (first !== channels || bias) throw new Unsupported(`${node.name} reads floats alone`);
    const value = alone ? sums[0] : this.#sumOfFloats(sums, spec, relu);
    if (value) this.#source(to, { kind: 'floats', value });
  }

  /** Returns the high bytes and the low ones of a map of floats. */
  #bytesOf(value: Operation): Operation {
    const spec = { type: 'quantised', channels: 2 * value.spec.channels, zero: 0 } as const;
    const known =
      this.#bytes.get(value) ??
      this.#operation(spec, [value], (program, [from = 0]) => program.splitBytes(from));
    this.#bytes.set(value, known);
    return known;
  }

  /** Returns what is planned and needed for the network's outputs. */
  #needed(): ReadonlySet<Planned> {
    const needed = new Set<Planned>();
    const names = new Set<string>();
    const need = (name: string) => {
      names.add(name);
      const source = this.#sources.get(name);
      if (source && source.kind !== 'concat') needed.add(source.value);
    };
    for (const name of this.#partition.outputs) need(name);
    for (const planned of this.#plan.toReversed()) {
      if ('write' in planned) {
        if (needed.has(planned)) for (const input of planned.inputs) needed.add(input);
      } else if ('node' in planned) {
        if (!planned.node.output.some((name) => names.has(name))) continue;
        needed.add(planned);
        for (const name of planned.node.input) need(name);
      } else if (names.has(planned.output)) needed.add(planned);
    }
    return needed;
  }

  /** Writes the program and replaces the graph's nodes by it and what is left around it. */
  finish(): void {
    const { program } = this.#partition;
    const needed = this.#needed();
    const written = new Map<Operation, number>();
    const numberOf = (operation: Operation) => written.get(operation) ?? Number.NaN;
    for (const planned of this.#plan) {
      if (!needed.has(planned)) continue;
      if ('write' in planned) written.set(planned, planned.write(program, planned.inputs.map(numberOf)));
      else if ('output' in planned) this.#giveOut(planned.output, numberOf);
      else {
        for (const name of planned.node.input) this.#giveOut(name, numberOf);
        this.#partition.keep(planned.node);
      }
    }
    if (program.outputs === 0) throw new Unsupported('it has no 8-bit part');
    this.#partition.replaceNodes('IntegerNetwork');
  }

  /** Ensures that a tensor of floats exists outside the program. */
  #giveOut(name: string, numberOf: (operation: Operation) => number): void {
    const { program } = this.#partition;
    const source = this.#sources.get(name);
    if (!source || this.#partition.hasProgramOutput(name)) return;
    if (source.kind === 'concat') throw new Unsupported(`${name} is needed outside the 8-bit part`);
    const value = numberOf(source.value);
    const output =
      source.kind === 'sum'
        ? program.sumOutput(value, source.scale, source.low)
        : program.output(
            value,
            source.kind === 'quantised'
              ? source.scales
              : new Float32Array(source.value.spec.channels).fill(1),
          );
    this.#partition.addProgramOutput(name, output);
  }
}

/** Throws Unsupported for a map that has more channels than the network's tensor. */
function wholeChannels({ value, scales }: QuantisedTensor<Operation>): void {
  if (value.spec.channels !== scales.length) throw new Unsupported('the image is used as a map');
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
 * Replaces what `table` quantises of a float network by one node of the operator `IntegerNetwork` (native/low_precision);
 * that part must be the only consumer of the network's input. Changes `model`. Throws a RangeError, and leaves the model
 * unchanged, if table and network do not match or the operator does not support something in the network.
 * @param floats returns the values of a float tensor in any encoding, in a new array
 */
export function asIntegerNetwork(model: ModelProto, table: QuantisationTable, floats: FloatsOf): void {
  const { graph } = model;
  if (!graph) throw new RangeError('the file has no graph');
  const network = new IntegerNetwork(graph, floats);
  quantise(graph, table, floats, network);
  network.finish();
  importOperators(model);
}
