import { fromBinary } from '@bufbuild/protobuf';
import { ModelProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { onEveryLevel } from './levels.ts';

/** Input of native/low_precision/program.h. */
export interface Program {
  readonly code: BigInt64Array;
  readonly floats: Float32Array;
  readonly ints: Int32Array;
  readonly weights: Int8Array;
}

/** Input of native/low_precision/matmul.h. */
export interface MatMul {
  readonly bf16: boolean;
  readonly inputs: number;
  readonly columns: readonly number[];
  readonly gelu: boolean;
  readonly constants: Float32Array;
  readonly weights: Int8Array;
}

/** Input of native/low_precision/convolution.h. */
export interface Convolution {
  readonly bf16: boolean;
  readonly channels: number;
  readonly outputs: number;
  readonly kernel: readonly [height: number, width: number];
  readonly stride: number;
  readonly dilation: number;
  readonly pads: readonly [top: number, left: number, bottom: number, right: number];
  readonly relu: boolean;
  readonly constants: Float32Array;
  readonly weights: Int8Array;
}

/** native/low_precision as exported by test/native/low_precision.cc. Memory and constants lie between inaccessible pages. */
export interface LowPrecisionAddon {
  /** The planes of each output. Throws an Error for a malformed program. */
  readonly runProgram: (
    program: Program,
    input: Float32Array,
    width: number,
    height: number,
    kernel: string,
    threads: number,
  ) => Float32Array[];
  /** What each matrix gives, row after row. Throws an Error for a product that does not fit together, or if `stopped`. */
  readonly runMatMul: (
    matmul: MatMul,
    rows: Float32Array,
    kernel: string,
    threads: number,
    stopped: boolean,
  ) => Float32Array[];
  /** [outputs, height, width]; a plain convolution without offsets. Throws an Error for one that does not fit together. */
  readonly runConvolution: (
    convolution: Convolution,
    height: number,
    width: number,
    input: Float32Array,
    offsets: Float32Array | undefined,
    masks: Float32Array | undefined,
    kernel: string,
    threads: number,
  ) => Float32Array;
  /** [batch, queries, heads, value channels]. Throws an Error for a shape that is not computed. */
  readonly runAttention: (
    sides: readonly [
      batch: number,
      queries: number,
      keys: number,
      heads: number,
      channels: number,
      valueChannels: number,
    ],
    scale: number,
    queries: Float32Array,
    keys: Float32Array,
    values: Float32Array,
    kernel: string,
    threads: number,
  ) => Float32Array;
  /** Bytes of memory that a run takes. */
  readonly planBytes: (program: Program, width: number, height: number) => number;
  /**
   * Kernels that can run here for programs in bf16, or in 8 bits: the processor's own by their instruction sets, best
   * first, then those for AMX with tiles of arrays ("emulated …").
   */
  readonly programKernels: (bf16: boolean) => string[];
  /** Whether a kernel for bf16 would be used; "incomplete" is one that does not work. */
  readonly passesSelfCheck: (kernel: string) => boolean;
}

/**
 * Runs on every level of the other loops too (levels.ts); kernels for AMX on the best one only, for every processor with AMX
 * has that.
 */
export const lowPrecisionAddon = onEveryLevel(
  ({ runProgram, runMatMul, runAttention, runConvolution, planBytes, programKernels, passesSelfCheck }) => ({
    runProgram,
    runMatMul,
    runAttention,
    runConvolution,
    planBytes,
    programKernels,
    passesSelfCheck,
  }),
  (_name, given) => given.some((each) => typeof each === 'string' && each.includes('amx')),
) as LowPrecisionAddon;

/** The program in a network of the form `int8-operators` or `bf16`. Throws if it has none. */
export function programOf(file: Uint8Array): Program {
  const { graph } = fromBinary(ModelProtoSchema, file);
  const [node] = graph?.node ?? [];
  if (!graph || node?.domain !== 'cutout')
    throw new Error('the network does not begin with an operator of Cutout');
  const bytes = (at: number) => {
    const tensor = graph.initializer.find(({ name }) => name === node.input[at]);
    if (!tensor) throw new Error(`input ${at} is no constant`);
    return Uint8Array.from(tensor.rawData).buffer;
  };
  return {
    code: new BigInt64Array(bytes(1)),
    floats: new Float32Array(bytes(2)),
    ints: new Int32Array(bytes(3)),
    weights: new Int8Array(bytes(4)),
  };
}
