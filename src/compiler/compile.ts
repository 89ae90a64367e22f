import { type Form, type OnnxForm, type Precision, precisionOfForm } from './form.ts';
import { makeSixteenBitNetwork } from './lowPrecision/bf16.ts';
import { replaceConvolutions } from './lowPrecision/convolution.ts';
import { whereSupported } from './lowPrecision/geometry.ts';
import { gpuProgram } from './lowPrecision/gpu.ts';
import { makeIntegerNetwork } from './lowPrecision/integerNetwork.ts';
import { isMostlyMatMuls, replaceMatMuls } from './lowPrecision/matmul.ts';
import type { MatrixFormat } from './lowPrecision/pack.ts';
import { Network } from './network.ts';
import { freeBatch } from './onnx/batch.ts';
import { collapseDeformable, isDeformable } from './onnx/deformable.ts';
import { OPERATORS_DOMAIN } from './onnx/graph.ts';
import { sampleDeformable } from './onnx/gridSample.ts';
import { estimateOf, type MemoryEstimate, needOf } from './onnx/memory.ts';
import type { NodeProto } from './onnx/onnx_pb.ts';
import { raiseOperatorSet } from './onnx/operatorSet.ts';
import { reduceBeforeEnlarging } from './onnx/pointwise.ts';
import { dropUnused, keepOutputs, resolveIdentities } from './onnx/prune.ts';
import { freeSize } from './onnx/size.ts';
import { floatBorders, hasHalf } from './onnx/widen.ts';
import { quantiseGraph } from './quantise/qdq.ts';
import type { QuantisationTable } from './quantise/table.ts';
import { resizeDecoder } from './sam2/decoder.ts';
import { buildEncoder } from './sam2/encoder.ts';
import { readOrtWeights } from './sam2/ortFile.ts';
import { tfjsToOnnx } from './tfjs/convert.ts';

/** What is known of a published network beside its bytes; manifests have it. */
interface NetworkDescription {
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

/** A network in the form that it was compiled to. */
export interface Compiled {
  /** The prepared network in pieces; may be iterated once. */
  readonly pieces: Iterable<Uint8Array>;
  readonly precision: Precision;
  readonly outputs: readonly string[];
  readonly freeBatch: boolean;
  readonly sizeStep: number;
  readonly operators: boolean;
  /** What a run on the CPU takes with an image of the description's size; undefined for other forms, and without a size. */
  readonly memory?: MemoryEstimate | undefined;
}

/**
 * Reads an ONNX file, which is borrowed until the network is encoded, with output 0 and the tensors `kept` as its outputs,
 * and of any size and number of images as far as that is known to be correct. With `batch` `kept` the batch dimension stays
 * as published, so that ONNX Runtime knows the size of every map. Numbers of 16 bits are widened to floats, unless `halves`.
 */
export function readNetwork(
  file: Uint8Array,
  kept: readonly string[],
  { halves = false, batch = 'free' }: { readonly halves?: boolean; readonly batch?: 'free' | 'kept' } = {},
): Network {
  const network = Network.read(file);
  const { graph } = network;
  const alpha = graph.output[0]?.name;
  if (alpha === undefined) throw new RangeError('the graph has no output');
  keepOutputs(graph, [...new Set([alpha, ...kept])]);
  if (!halves) network.widen();
  else if (hasHalf(graph)) floatBorders(graph);
  dropUnused(graph);
  resolveIdentities(graph);
  if (collapseDeformable(network.model, graph) > 0) dropUnused(graph);
  if (!hasHalf(graph)) {
    reduceBeforeEnlarging(network.model, graph, network.floats);
    // TensorRT, which runs float16, builds an engine per size.
    network.sizeStep = freeSize(graph) ?? 0;
  }
  if (batch === 'free') network.freeBatch = freeBatch(graph);
  return network;
}

/** The first operator set that has 8 bits for each channel. */
const operatorSetOf8Bits = 13n;

/** Quantises what the table names: with `own` as an operator of Cutout where that is possible, else in standard operators. */
export function quantiseNetwork(network: Network, table: QuantisationTable, own: boolean): void {
  const { model, graph, floats } = network;
  if (!raiseOperatorSet(model, operatorSetOf8Bits))
    throw new RangeError(
      `it is written in an operator set older than ${operatorSetOf8Bits}, which 8 bits need`,
    );
  const made = own && whereSupported(() => makeIntegerNetwork(graph, table, floats));
  if (made) network.useOperators();
  else quantiseGraph(graph, table, floats);
  dropUnused(graph);
}

/**
 * Makes the products of a transformer, or else in bf16 the convolutional part of a network, operators of Cutout. Where
 * convolutions are deformable, which are no part of a program, each convolution and each product is an operator.
 */
export function useMatrices(network: Network, format: MatrixFormat): void {
  const { graph, floats } = network;
  if (graph.node.some(isDeformable)) {
    replaceConvolutions(graph, floats, format);
    whereSupported(() => replaceMatMuls(graph, floats, format));
  } else if (isMostlyMatMuls(graph)) replaceMatMuls(graph, floats, format);
  else if (format === 'int8')
    throw new RangeError('it has no 8-bit form: set CUTOUT_PRECISION to auto or fp32');
  else makeSixteenBitNetwork(graph, floats, format);
  network.useOperators();
  dropUnused(graph);
}

/** Whether a node computes the convolutional part of a network (native/ort/custom_operators.h). */
const isProgram = ({ domain, opType }: NodeProto) =>
  domain === OPERATORS_DOMAIN && opType.endsWith('Network');

/**
 * Compiles an ONNX file of a network that makes mattes or features to a form: keeps output 0 and `features` only, and with
 * `batch` `kept` the batch dimension. `file` is borrowed until the pieces are read. Throws a RangeError for an unsupported
 * network, an Error of the protobuf reader for bytes that are not an ONNX file.
 */
export function compileOnnx(
  file: Uint8Array,
  features: string | undefined,
  form: OnnxForm,
  table?: QuantisationTable,
  batch: 'free' | 'kept' = 'free',
  size?: Pick<NetworkDescription['input'], 'width' | 'height'>,
): Compiled {
  const halves = form === 'fp16' || form === 'tensorrt';
  const network = readNetwork(file, features === undefined ? [] : [features], { halves, batch });
  const { graph } = network;
  const input = size && !halves ? [1, 3, size.height, size.width] : undefined;
  const floats = input && needOf(graph, input);
  if (form === 'tensorrt') sampleDeformable(network.model, graph);
  else if (form === 'bf16') useMatrices(network, form);
  else if (form === 'int8-operators' && !table) useMatrices(network, 'int8');
  else if (form === 'int8' || form === 'int8-operators') {
    if (!table) throw new RangeError('there is no table of 8-bit scales for it');
    quantiseNetwork(network, table, form === 'int8-operators');
  }
  const precision = halves && !hasHalf(graph) ? 'fp32' : precisionOfForm(form);
  const outputs = graph.output.map(({ name }) => name);
  const { freeBatch, sizeStep, operators } = network;
  const whole = form === 'int8' || graph.node.some(isProgram);
  const memory = floats && (whole ? estimateOf(floats, form) : estimateOf(needOf(graph, input)));
  return { pieces: network.encode(), precision, outputs, freeBatch, sizeStep, operators, memory };
}

/**
 * Compiles an ONNX file to a program for Cutout's own kernels on a GPU (lowPrecision/gpu.ts), or where it cannot be one as
 * for ONNX Runtime in the precision that it was published in. `file` is borrowed until the pieces are read.
 */
function compileForGpu(file: Uint8Array, { features, file: { precision } }: NetworkDescription): Compiled {
  const program = whereSupported((): Compiled => {
    const { graph, floats } = readNetwork(file, []);
    const outputs = graph.output.map(({ name }) => name);
    const pieces = gpuProgram(graph, floats);
    return { pieces, precision: 'fp16', outputs, freeBatch: true, sizeStep: 0, operators: true };
  });
  return program ?? compileOnnx(file, features, precision);
}

/** Compiles SAM 2's encoder or decoder for inputs of the description's size. */
function compileSelector(source: Uint8Array, { role, input }: NetworkDescription, form: Form): Compiled {
  const { width, height } = input;
  if (width !== height) throw new RangeError('its input is not square');
  let network: Network;
  if (role === 'encoder') {
    network = new Network(buildEncoder(readOrtWeights(source), width));
    if (form === 'bf16') useMatrices(network, form);
  } else {
    if (form !== 'fp32') throw new RangeError(`a decoder has no form in ${form}`);
    network = Network.read(source);
    resizeDecoder(network.graph, width);
  }
  const { operators } = network;
  const fixed = { outputs: [], freeBatch: false, sizeStep: 0 };
  return { pieces: network.encode(), precision: precisionOfForm(form), ...fixed, operators };
}

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
): Compiled {
  const { role, features } = network;
  if (role === 'encoder' || role === 'decoder') return compileSelector(source, network, form);
  const file = asOnnx(source, network);
  if (form === 'gpu') return compileForGpu(file, network);
  // A detector reads one image at a time.
  return compileOnnx(file, features, form, table, role === 'detector' ? 'kept' : 'free', network.input);
}
