import { type Form, type OnnxForm, type Precision, precisionOfForm } from './form.ts';
import { gpuProgram } from './lowPrecision/gpu.ts';
import { Network, type Pass } from './network.ts';
import { hasHalf } from './onnx/widen.ts';
import * as passes from './passes.ts';
import type { QuantisationTable } from './quantise/table.ts';
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

/** A network in the form that it was compiled to. */
export interface Compiled {
  /** The prepared network in pieces; may be iterated once. */
  readonly pieces: Iterable<Uint8Array>;
  readonly precision: Precision;
  readonly outputs: readonly string[];
  readonly freeBatch: boolean;
  readonly sizeStep: number;
  readonly operators: boolean;
}

/**
 * Returns what is done to a network, in this order. Operators of Cutout that do not support something in an 8-bit network
 * leave it to those of ONNX Runtime; there is no other form of bf16.
 */
function passesFor(form: OnnxForm, table: QuantisationTable | undefined): readonly Pass[] {
  if (form === 'fp32' || form === 'fp16') return [];
  if (form === 'bf16') return [passes.makeBf16, passes.dropUnused];
  if (!table) throw new RangeError('there is no table of 8-bit scales for it');
  const standard = passes.quantiseConvolutions(table);
  const own = passes.eitherOf(passes.makeIntegerNetwork(table), standard);
  return [passes.raiseOperators, form === 'int8' ? standard : own, passes.dropUnused];
}

/**
 * Compiles an ONNX file of a network that makes mattes or features to a form: keeps output 0 and `features` only. With
 * `batch` `kept` the batch dimension stays as published, so that ONNX Runtime knows the size of every map. `file` is
 * borrowed until the pieces are read. Throws a RangeError for an unsupported network, an Error of the protobuf reader for
 * bytes that are not an ONNX file.
 */
export function compileOnnx(
  file: Uint8Array,
  features: string | undefined,
  form: OnnxForm,
  table?: QuantisationTable,
  batch: 'free' | 'kept' = 'free',
): Compiled {
  const network = Network.read(file);
  const half = hasHalf(network.graph);
  network.apply(
    passes.keepOutputs(features),
    form === 'fp16' ? passes.giveFloatBorders : passes.widenToFloats,
    passes.dropUnused,
    passes.freeInputSize,
    ...(batch === 'free' ? [passes.freeBatchSize] : []),
    ...passesFor(form, table),
  );
  const { graph, freeBatch, sizeStep, operators } = network;
  return {
    pieces: network.encode(),
    precision: form === 'fp16' && !half ? 'fp32' : precisionOfForm(form),
    outputs: graph.output.map(({ name }) => name),
    freeBatch,
    sizeStep,
    operators,
  };
}

/**
 * Compiles an ONNX file to a program for Cutout's own kernels on a GPU (lowPrecision/gpu.ts), or where it cannot be one as
 * for ONNX Runtime in the precision that it was published in. `file` is borrowed until the pieces are read.
 */
function compileForGpu(file: Uint8Array, { features, file: { precision } }: NetworkDescription): Compiled {
  try {
    const network = Network.read(file).apply(passes.keepOutputs(), ...passes.AS_FREE_FLOATS);
    const outputs = network.graph.output.map(({ name }) => name);
    const pieces = gpuProgram(network.graph, network.floats);
    return { pieces, precision: 'fp16', outputs, freeBatch: true, sizeStep: 0, operators: true };
  } catch (error) {
    if (error instanceof RangeError) return compileOnnx(file, features, precision);
    throw error;
  }
}

/** Compiles SAM 2's encoder or decoder for inputs of the description's size. */
function compileSelector(source: Uint8Array, { role, input }: NetworkDescription, form: Form): Compiled {
  const { width, height } = input;
  if (width !== height) throw new RangeError('its input is not square');
  let network: Network;
  if (role === 'encoder') {
    network = new Network(buildEncoder(readOrtWeights(source), width));
    if (form === 'bf16') network.apply(passes.makeBf16MatMuls, passes.dropUnused);
  } else {
    if (form !== 'fp32') throw new RangeError(`a decoder has no form in ${form}`);
    network = Network.read(source).apply(passes.resizeDecoderTo(width));
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
  return compileOnnx(file, features, form, table, role === 'detector' ? 'kept' : 'free');
}
