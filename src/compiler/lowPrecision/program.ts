/** The input of native/low_precision/program.h: the 8-bit part of a network as a list of operations. */

/** Kinds of operations, by their numbers in native/low_precision/program.h. */
const KIND = {
  input: 0,
  conv: 1,
  maxPool: 2,
  resize: 3,
  add: 4,
  concat: 5,
  splitBytes: 6,
  combine: 7,
  output: 8,
  sumOutput: 9,
  planes: 10,
} as const;

/** Types of values, by their numbers in native/low_precision/program.h. */
const TYPE = { quantised: 0, floats: 1, bf16: 2 } as const;

export interface ValueSpec {
  readonly type: keyof typeof TYPE;
  readonly channels: number;
  /** Zero point: the quantised value that stands for 0; 0 for floats and bf16. */
  readonly zero: number;
}

/** What all convolutions have in common. */
interface ConvWindow {
  /** First input channel that is read, and the number of channels. */
  readonly channel: number;
  readonly channels: number;
  /** Height and width. */
  readonly kernel: readonly [number, number];
  readonly stride: number;
  readonly dilation: number;
  /** Top, left, bottom, right. */
  readonly pads: readonly [number, number, number, number];
  /** Whether negative results become 0. */
  readonly relu: boolean;
}

export interface ConvSpec extends ConvWindow {
  /** Packed (pack.ts): for each group of 16 output channels one panel, for 16-bit weights two. */
  readonly weights: Int8Array;
  readonly panels: 1 | 2;
  readonly bias: Int32Array;
  readonly scales: Float32Array;
}

export interface Bf16ConvSpec extends ConvWindow {
  /** Packed (pack.ts). */
  readonly weights: Int8Array;
  readonly bias: Float32Array;
}

/** Values of one kind, which operations refer to by index. */
class Pool<T extends Float32Array | Int32Array | Int8Array> {
  readonly #parts: T[] = [];
  #length = 0;

  add(part: T): number {
    const at = this.#length;
    this.#parts.push(part);
    this.#length += part.length;
    return at;
  }

  /** Returns all of them, little-endian. */
  bytes(): Uint8Array {
    const all = new Uint8Array(this.#parts.reduce((sum, { byteLength }) => sum + byteLength, 0));
    let at = 0;
    for (const { buffer, byteOffset, byteLength } of this.#parts) {
      all.set(new Uint8Array(buffer, byteOffset, byteLength), at);
      at += byteLength;
    }
    return all;
  }

  get length(): number {
    return this.#length;
  }
}

/** An operation of a program; `rest` as native/low_precision/program.cc reads it. */
export interface ProgramOperation {
  readonly kind: keyof typeof KIND;
  /** Values. */
  readonly inputs: readonly number[];
  /** A value, or the number of an output. */
  readonly output: number;
  readonly rest: readonly number[];
}

/** Returns how many channels a convolution reads, and the taps of its window. */
export function convolutionOf({ rest }: ProgramOperation): {
  readonly channels: number;
  readonly taps: number;
} {
  const [, channels = 0, height = 0, width = 0] = rest;
  return { channels, taps: height * width };
}

/** Assembles a program, operation by operation, in execution order. */
export class ProgramWriter {
  readonly #values: ValueSpec[] = [];
  readonly #operations: ProgramOperation[] = [];
  readonly floats = new Pool<Float32Array>();
  readonly ints = new Pool<Int32Array>();
  readonly weights = new Pool<Int8Array>();
  readonly #inputChannels: number;
  #outputs = 0;

  constructor(inputChannels: number) {
    this.#inputChannels = inputChannels;
  }

  get outputs(): number {
    return this.#outputs;
  }

  get operations(): readonly ProgramOperation[] {
    return this.#operations;
  }

  /** Throws a RangeError for an index that is no value of this program. */
  spec(value: number): ValueSpec {
    const spec = this.#values[value];
    if (!spec) throw new RangeError(`there is no value ${value}`);
    return spec;
  }

  #value(spec: ValueSpec): number {
    return this.#values.push(spec) - 1;
  }

  #operation(kind: keyof typeof KIND, inputs: readonly number[], output: number, ...rest: number[]): number {
    this.#operations.push({ kind, inputs, output, rest });
    return output;
  }

  /** Adds the input of the program; `scale` applies to quantised values only. */
  input(spec: ValueSpec, scale = 1): number {
    const scales = spec.type === 'quantised' ? [this.floats.add(Float32Array.of(scale))] : [];
    return this.#operation('input', [], this.#value(spec), ...scales);
  }

  #conv(
    input: number,
    output: ValueSpec,
    { channel, channels, kernel, stride, dilation, pads, relu }: ConvWindow,
    panels: 1 | 2,
    ...constants: number[]
  ): number {
    const window = [channel, channels, ...kernel, stride, dilation, ...pads];
    return this.#operation(
      'conv',
      [input],
      this.#value(output),
      ...window,
      panels,
      relu ? 1 : 0,
      ...constants,
    );
  }

  conv(input: number, output: ValueSpec, conv: ConvSpec): number {
    const { weights, bias, scales } = conv;
    const constants = [this.weights.add(weights), this.ints.add(bias), this.floats.add(scales)];
    return this.#conv(input, output, conv, conv.panels, ...constants);
  }

  bf16Conv(input: number, output: ValueSpec, conv: Bf16ConvSpec): number {
    return this.#conv(input, output, conv, 1, this.weights.add(conv.weights), this.floats.add(conv.bias));
  }

  maxPool(input: number, kernel: number, stride: number, roundUp: boolean): number {
    return this.#operation(
      'maxPool',
      [input],
      this.#value(this.spec(input)),
      kernel,
      stride,
      roundUp ? 1 : 0,
    );
  }

  resize(input: number, factor: number): number {
    return this.#operation('resize', [input], this.#value(this.spec(input)), factor);
  }

  /** Computes round(a * first + (b * second + offset)). */
  add(a: number, b: number, zero: number, factors: readonly [number, number, number]): number {
    const spec = { ...this.spec(a), zero };
    return this.#operation('add', [a, b], this.#value(spec), this.floats.add(Float32Array.from(factors)));
  }

  concat(inputs: readonly number[]): number {
    const specs = inputs.map((input) => this.spec(input));
    const channels = specs.reduce((sum, spec) => sum + spec.channels, 0);
    const { type, zero } = specs[0] ?? { type: 'quantised', zero: 0 };
    return this.#operation('concat', inputs, this.#value({ type, channels, zero }));
  }

  splitBytes(input: number): number {
    const { channels } = this.spec(input);
    return this.#operation(
      'splitBytes',
      [input],
      this.#value({ type: 'quantised', channels: 2 * channels, zero: 0 }),
    );
  }

  /** Sums float or bf16 values; `scale` applies to quantised values only. */
  combine(inputs: readonly number[], output: ValueSpec, relu: boolean, scale = 1): number {
    const at = this.floats.add(Float32Array.of(scale));
    return this.#operation('combine', inputs, this.#value(output), relu ? 1 : 0, at);
  }

  /** Returns the output's index. `scales`: one per channel; ignored for floats. */
  output(input: number, scales: Float32Array): number {
    return this.#operation('output', [input], this.#outputs++, this.floats.add(scales));
  }

  sumOutput(input: number, scale: number, low: number): number {
    return this.#operation(
      'sumOutput',
      [input],
      this.#outputs++,
      this.floats.add(Float32Array.of(scale, low)),
    );
  }

  /** Returns the output's number: the first `channels` of floats or bf16. */
  planes(input: number, channels: number): number {
    return this.#operation('planes', [input], this.#outputs++, channels);
  }

  code(): BigInt64Array {
    const values = this.#values.flatMap(({ type, channels, zero }) => [TYPE[type], channels, zero]);
    const head = [this.#inputChannels, this.#outputs, this.#values.length];
    const operations = this.#operations.flatMap(({ kind, inputs, output, rest }) => [
      KIND[kind],
      inputs.length,
      ...inputs,
      output,
      ...rest,
    ]);
    return BigInt64Array.from([...head, ...values, ...operations].map(BigInt));
  }
}
