import { fromBinary } from '@bufbuild/protobuf';
import { type Form, type Precision, precisionOfForm } from './form.ts';
import { asBf16Network } from './lowPrecision/bf16.ts';
import { asIntegerNetwork } from './lowPrecision/convert.ts';
import { gpuProgram } from './lowPrecision/gpu.ts';
import { asBf16MatMuls, isMostlyMatMuls } from './lowPrecision/matmul.ts';
import { freeBatch } from './onnx/batch.ts';
import { allTensors, sortNodes } from './onnx/graph.ts';
import { floatReader, halfWidener } from './onnx/half.ts';
import { type ModelProto, ModelProtoSchema, type TensorProto } from './onnx/onnx_pb.ts';
import { raiseOperatorSet } from './onnx/operatorSet.ts';
import { dropUnused, keepOutputs } from './onnx/prune.ts';
import { freeSize } from './onnx/size.ts';
import { floatBorders, hasHalf, widen } from './onnx/widen.ts';
import { encodeModel } from './onnx/write.ts';
import { quantise } from './quantise/graph.ts';
import type { QuantisationTable } from './quantise/table.ts';
import { resizeDecoder } from './sam2/decoder.ts';
import { buildEncoder } from './sam2/encoder.ts';
import { readOrtWeights } from './sam2/ortFile.ts';
import { tfjsToOnnx } from './tfjs/convert.ts';

/** What is known of a published network beside its bytes; manifests have it. */
export interface NetworkDescription {
  readonly role: 'matte' | 'detector' | 'encoder' | 'decoder';
  /** The tensor kept as output 1. */
  readonly features?: string | undefined;
  /** The image is stretched to width x height; a channel's value v in 0..255 becomes (v - mean) / std. */
  readonly input: {
    readonly width: number;
    readonly height: number;
    readonly mean: readonly [number, number, number];
    readonly std: readonly [number, number, number];
  };
  readonly file: {
    /** Float format of the published file. */
    readonly precision: 'fp32' | 'fp16';
    readonly format:
      | { readonly name: 'onnx' | 'ort' }
      | { readonly name: 'tfjs'; readonly jsonBytes: number; readonly output: string };
  };
}

export interface Rewritten {
  /** The prepared network in pieces; may be iterated once. */
  readonly pieces: Iterable<Uint8Array>;
  readonly precision: Precision;
  readonly outputs: readonly string[];
  readonly freeBatch: boolean;
  readonly sizeStep: number;
  readonly operators: boolean;
}

/** Makes the products of a transformer, or else the convolutions of a network, operators of Cutout in bf16. */
function inBf16(model: ModelProto, floats: (tensor: TensorProto) => Float32Array): void {
  if (isMostlyMatMuls(model)) asBf16MatMuls(model, floats);
  else asBf16Network(model, floats);
}

/** Whether the 8-bit part of the network was made one operator of Cutout. */
function madeOperator(model: ModelProto, floats: (tensor: TensorProto) => Float32Array): boolean {
  try {
    asIntegerNetwork(model, floats);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

function refuseExternalData(model: ModelProto): void {
  if (!model.graph) throw new RangeError('the file has no graph');
  for (const tensor of allTensors(model.graph)) {
    if (tensor.externalData.length > 0 || tensor.dataLocation !== 0) {
      throw new RangeError(`tensor ${tensor.name} is kept in another file, which is refused`);
    }
  }
}

/**
 * Rewrites a published ONNX file for the engine:
 *
 * - keeps output 0 and `features` only, and drops what they do not need;
 * - widens float16 to float32 unless `form` is fp16; input and outputs are float32 in any case;
 * - frees batch dimension and input size where that is known to be correct (onnx/batch.ts, onnx/size.ts). The
 *   size stays fixed for fp16, because TensorRT builds an engine per size. With `batch` `kept` the batch
 *   dimension stays as published, so that ONNX Runtime knows the size of every map;
 * - for `int8`, quantises the convolutions with the scales of `table` (quantise/graph.ts);
 * - for `int8-operators`, also makes the 8-bit part one operator (lowPrecision/convert.ts), unless the network has
 *   something that this operator does not support: the result is then the same as for `int8`;
 * - for `bf16`, makes the convolutional part one operator (lowPrecision/bf16.ts), of a transformer its matrix products
 *   operators (lowPrecision/matmul.ts).
 *
 * `file` is borrowed until the pieces are read. Throws a RangeError for an unsupported network, an Error of
 * the protobuf reader for bytes that are not an ONNX file.
 */
export function rewrite(
  file: Uint8Array,
  features: string | undefined,
  form: Form,
  table?: QuantisationTable,
  batch: 'free' | 'kept' = 'free',
): Rewritten {
  const precision = precisionOfForm(form);
  const model = fromBinary(ModelProtoSchema, file);
  refuseExternalData(model);
  const { graph } = model;
  const alpha = graph?.output[0]?.name;
  if (!graph || alpha === undefined) throw new RangeError('the graph has no output');
  const outputs = features === undefined ? [alpha] : [alpha, features];
  keepOutputs(graph, outputs);
  const half = hasHalf(graph);
  const widenBytes = halfWidener();
  let widened = new Set<TensorProto>();
  if (half && precision !== 'fp16') widened = widen(graph, widenBytes);
  else if (half) {
    floatBorders(graph);
    sortNodes(graph);
  }
  const floats = floatReader(widened, widenBytes);
  dropUnused(graph);
  const sizeStep = half && precision === 'fp16' ? 0 : (freeSize(graph) ?? 0);
  const free = batch === 'free' && freeBatch(graph);
  let operators = false;
  if (precision === 'int8') {
    if (!table) throw new RangeError('there is no table of 8-bit scales for it');
    const standard = raiseOperatorSet(model);
    if (standard < 13n) throw new RangeError(`it is written in operator set ${standard}, 8 bits need 13`);
    quantise(graph, table, floats);
    dropUnused(graph);
    operators = form === 'int8-operators' && madeOperator(model, floats);
    if (operators) dropUnused(graph);
  }
  if (precision === 'bf16') {
    inBf16(model, floats);
    dropUnused(graph);
    operators = true;
  }
  return {
    pieces: encodeModel(model, widened, widenBytes),
    precision: precision === 'fp16' && !half ? 'fp32' : precision,
    outputs,
    freeBatch: free,
    sizeStep,
    operators,
  };
}

/**
 * The network as a program for Cutout's own kernels on a GPU (lowPrecision/gpu.ts), or where it cannot be one as for ONNX
 * Runtime in the precision that it was published in. `file` is borrowed until the pieces are read.
 */
function rewriteForGpu(file: Uint8Array, { features, file: { precision } }: NetworkDescription): Rewritten {
  const { graph } = fromBinary(ModelProtoSchema, file);
  const alpha = graph?.output[0]?.name;
  const asPublished = () => rewrite(file, features, precision);
  if (!graph || alpha === undefined) return asPublished();
  keepOutputs(graph, [alpha]);
  const widenBytes = halfWidener();
  const widened = hasHalf(graph) ? widen(graph, widenBytes) : new Set<TensorProto>();
  dropUnused(graph);
  freeSize(graph);
  freeBatch(graph);
  try {
    const pieces = gpuProgram(graph, floatReader(widened, widenBytes));
    return { pieces, precision: 'fp16', outputs: [alpha], freeBatch: true, sizeStep: 0, operators: true };
  } catch (error) {
    if (error instanceof RangeError) return asPublished();
    throw error;
  }
}

/** The networks that find what points or a box show, for the size of the manifest's input. */
const asSelector = (pieces: Iterable<Uint8Array>, precision: Precision): Rewritten => ({
  pieces,
  precision,
  outputs: [],
  freeBatch: false,
  sizeStep: 0,
  operators: precision === 'bf16',
});

/** SAM 2's encoder or decoder for inputs of this size. */
function resizeSelector(
  source: Uint8Array,
  { role, input }: NetworkDescription,
  precision: Precision,
): Iterable<Uint8Array> {
  const { width, height } = input;
  if (width !== height) throw new RangeError('its input is not square');
  const widenBytes = halfWidener();
  if (role === 'encoder') {
    const encoder = buildEncoder(readOrtWeights(source), width);
    if (precision === 'bf16') {
      asBf16MatMuls(encoder, floatReader(new Set(), widenBytes));
      if (encoder.graph) dropUnused(encoder.graph);
    }
    return encodeModel(encoder, new Set(), widenBytes);
  }
  if (precision !== 'fp32') throw new RangeError(`a decoder has no form in ${precision}`);
  const model = fromBinary(ModelProtoSchema, source);
  refuseExternalData(model);
  if (model.graph) resizeDecoder(model.graph, width);
  return encodeModel(model, new Set(), widenBytes);
}

const selects = ({ role }: NetworkDescription): boolean => role === 'encoder' || role === 'decoder';

/** Converts the published file to ONNX if necessary. Throws a RangeError for what cannot be converted. */
function asOnnx(source: Uint8Array, { file, features, input }: NetworkDescription): Uint8Array {
  const { format } = file;
  if (format.name !== 'tfjs') return source;
  const json = new TextDecoder().decode(source.subarray(0, format.jsonBytes));
  const outputs = features === undefined ? [format.output] : [format.output, features];
  return tfjsToOnnx(json, source.subarray(format.jsonBytes), outputs, input);
}

/**
 * Compiles a published file to a form. `table` is needed for 8 bits. `source` is borrowed until the pieces are read.
 * Throws a RangeError for a network that cannot be compiled, an Error of the protobuf reader for bytes that are not an
 * ONNX file.
 */
export function compile(
  source: Uint8Array,
  network: NetworkDescription,
  form: Form,
  table?: QuantisationTable,
): Rewritten {
  const precision = precisionOfForm(form);
  if (selects(network)) return asSelector(resizeSelector(source, network, precision), precision);
  const file = asOnnx(source, network);
  if (form === 'gpu') return rewriteForGpu(file, network);
  // A detector reads one image at a time.
  const batch = network.role === 'detector' ? 'kept' : 'free';
  return rewrite(file, network.features, form, table, batch);
}
