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

interface ConvSpec {
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
  /** Packed (pack.ts): for each group of 16 output channels one panel, for 16-bit weights of integers two. */
  readonly weights: Int8Array;
  readonly panels: 1 | 2;
  /** Integers in steps of `scales`; floats for bf16. */
  readonly bias: Int32Array | Float32Array;
  /** One per output channel; none for bf16. */
  readonly scales?: Float32Array;
}

/** Values of one kind, which operations refer to by index. */
export class Pool<T extends Float32Array | Int32Array | Int8Array> {
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
    const bytesOf = ({ buffer, byteOffset, byteLength }: T) => new Uint8Array(buffer, byteOffset, byteLength);
    return Buffer.concat(this.#parts.map(bytesOf));
  }

  get length(): number {
    return this.#length;
  }
}

/** An operation of a program; `rest` as native/low_precision/program.cc reads it. */
interface ProgramOperation {
  readonly kind: keyof typeof KIND;
  /** Values. */
  readonly inputs: readonly number[];
  /** A value, or the number of an output. */
  readonly output: number;
  readonly rest: readonly number[];
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

  get operations(): readonly ProgramOperation[] {
    return this.#operations;
  }

  /** Throws a RangeError for an index that is no value of this program. */
  spec(value: number): ValueSpec {
    const spec = this.#values[value];
    if (!spec) throw new RangeError(`there is no value ${value}`);
    return spec;
  }

  /** Adds an operation that makes a value, and returns the value. */
  #make(kind: keyof typeof KIND, inputs: readonly number[], spec: ValueSpec, ...rest: number[]): number {
    const output = this.#values.push(spec) - 1;
    this.#operations.push({ kind, inputs, output, rest });
    return output;
  }

  /** Adds an operation that gives a value out, and returns the output's number. */
  #give(kind: keyof typeof KIND, input: number, ...rest: number[]): number {
    this.#operations.push({ kind, inputs: [input], output: this.#outputs, rest });
    return this.#outputs++;
  }

  /** Adds the input of the program; `scale` applies to quantised values only. */
  input(spec: ValueSpec, scale = 1): number {
    const scales = spec.type === 'quantised' ? [this.floats.add(Float32Array.of(scale))] : [];
    return this.#make('input', [], spec, ...scales);
  }

  conv(input: number, output: ValueSpec, conv: ConvSpec): number {
    const { channel, channels, kernel, stride, dilation, pads, relu, panels, weights, bias, scales } = conv;
    const window = [channel, channels, ...kernel, stride, dilation, ...pads, panels, relu ? 1 : 0];
    const constants = [
      this.weights.add(weights),
      bias instanceof Int32Array ? this.ints.add(bias) : this.floats.add(bias),
      ...(scales ? [this.floats.add(scales)] : []),
    ];
    return this.#make('conv', [input], output, ...window, ...constants);
  }

  maxPool(input: number, kernel: number, stride: number, roundUp: boolean): number {
    return this.#make('maxPool', [input], this.spec(input), kernel, stride, roundUp ? 1 : 0);
  }

  resize(input: number, factor: number): number {
    return this.#make('resize', [input], this.spec(input), factor);
  }

  /** Computes round(a * first + (b * second + offset)). */
  add(a: number, b: number, zero: number, factors: readonly [number, number, number]): number {
    return this.#make('add', [a, b], { ...this.spec(a), zero }, this.floats.add(Float32Array.from(factors)));
  }

  concat(inputs: readonly number[]): number {
    const specs = inputs.map((input) => this.spec(input));
    const channels = specs.reduce((sum, spec) => sum + spec.channels, 0);
    const { type, zero } = specs[0] ?? { type: 'quantised', zero: 0 };
    return this.#make('concat', inputs, { type, channels, zero });
  }

  splitBytes(input: number): number {
    const channels = 2 * this.spec(input).channels;
    return this.#make('splitBytes', [input], { type: 'quantised', channels, zero: 0 });
  }

  /** Sums float or bf16 values; `scale` applies to quantised values only. */
  combine(inputs: readonly number[], output: ValueSpec, relu: boolean, scale = 1): number {
    return this.#make('combine', inputs, output, relu ? 1 : 0, this.floats.add(Float32Array.of(scale)));
  }

  /** Returns the output's index. `scales`: one per channel; ignored for floats. */
  output(input: number, scales: Float32Array): number {
    return this.#give('output', input, this.floats.add(scales));
  }

  sumOutput(input: number, scale: number, low: number): number {
    return this.#give('sumOutput', input, this.floats.add(Float32Array.of(scale, low)));
  }

  /** Returns the output's number: the first `channels` of floats or bf16. */
  planes(input: number, channels: number): number {
    return this.#give('planes', input, channels);
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
