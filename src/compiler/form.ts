/**
 * Number format of a prepared network: float32 for every CPU, int8 for CPUs with dot-product instructions, bf16 for
 * CPUs with those of bf16, float16 for GPUs where the network was published in it.
 */
export type Precision = 'fp32' | 'bf16' | 'int8' | 'fp16';

/**
 * What a network is prepared as. `int8` has ONNX's standard operators only; in `int8-operators` the 8-bit part is one
 * operator of Cutout (lowPrecision/integerNetwork.ts), for processors with a kernel for it. `bf16` always has such an operator
 * (lowPrecision/bf16.ts). `gpu` is a program for Cutout's own kernels on a GPU (lowPrecision/gpu.ts), or what ONNX
 * Runtime's provider for CUDA takes where the network cannot be one. `tensorrt` is in the precision that it was published in.
 */
export type Form = OnnxForm | 'gpu';

/** The forms that are ONNX files. */
export type OnnxForm = Precision | 'int8-operators' | 'tensorrt';

export const FORMS = [
  'fp32',
  'bf16',
  'int8-operators',
  'int8',
  'tensorrt',
  'gpu',
] as const satisfies readonly Form[];

/** The precision of a form; `gpu` and `tensorrt` may also have floats, as PreparedRecord.precision says. */
export const precisionOfForm = (form: Form): Precision =>
  form === 'int8-operators' ? 'int8' : form === 'gpu' || form === 'tensorrt' ? 'fp16' : form;

/** Incremented whenever preparation produces different files; older ones are then prepared again. */
export const PREPARER_VERSION = 8;
/** The same for the forms in 16 bits. */
const PREPARER_VERSION_16 = 9;

export const preparerOf = (form: Form): number =>
  form === 'tensorrt' || form === 'gpu' || form === 'bf16' ? PREPARER_VERSION_16 : PREPARER_VERSION;
