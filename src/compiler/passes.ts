import { asBf16Network } from './lowPrecision/bf16.ts';
import { asIntegerNetwork } from './lowPrecision/integerNetwork.ts';
import { asBf16MatMuls, isMostlyMatMuls } from './lowPrecision/matmul.ts';
import type { Network, Pass } from './network.ts';
import { freeBatch } from './onnx/batch.ts';
import { sortNodes } from './onnx/graph.ts';
import { raiseOperatorSet } from './onnx/operatorSet.ts';
import * as prune from './onnx/prune.ts';
import { freeSize } from './onnx/size.ts';
import { floatBorders, hasHalf, widen } from './onnx/widen.ts';
import { quantiseGraph } from './quantise/qdq.ts';
import type { QuantisationTable } from './quantise/table.ts';
import { resizeDecoder } from './sam2/decoder.ts';

/** Drops what no output needs. */
export const dropUnused: Pass = ({ graph }) => prune.dropUnused(graph);

/** Keeps output 0 and these tensors as the only outputs. */
export const keepOutputs =
  (...others: readonly (string | undefined)[]): Pass =>
  ({ graph }) => {
    const alpha = graph.output[0]?.name;
    if (alpha === undefined) throw new RangeError('the graph has no output');
    prune.keepOutputs(graph, [...new Set([alpha, ...others.filter((name) => name !== undefined)])]);
  };

/** Widens float16 to float32. */
export const widenToFloats: Pass = (network) => {
  const { graph, widenBytes } = network;
  if (hasHalf(graph)) network.widened = widen(graph, widenBytes);
};

/** Gives a network in float16 inputs and outputs of float32, which the engine requires. */
export const giveFloatBorders: Pass = ({ graph }) => {
  if (!hasHalf(graph)) return;
  floatBorders(graph);
  sortNodes(graph);
};

/** Frees the input's size where that is known to be correct; not in float16, as TensorRT builds an engine per size. */
export const freeInputSize: Pass = (network) => {
  if (!hasHalf(network.graph)) network.sizeStep = freeSize(network.graph) ?? 0;
};

/** Frees the batch dimension where that is known to be correct. */
export const freeBatchSize: Pass = (network) => {
  network.freeBatch = freeBatch(network.graph);
};

/** Makes a network one of floats, of any size and number of images as far as that is known to be correct. */
export const AS_FREE_FLOATS: readonly Pass[] = [widenToFloats, dropUnused, freeInputSize, freeBatchSize];

/** Raises the operator set to one that has 8 bits for each channel. */
export const raiseOperators: Pass = ({ model }) => {
  const standard = raiseOperatorSet(model);
  if (standard < 13n) throw new RangeError(`it is written in operator set ${standard}, 8 bits need 13`);
};

/** Quantises the convolutions with the scales of `table`, in ONNX's standard operators. */
export const quantiseConvolutions =
  (table: QuantisationTable): Pass =>
  ({ graph, floats }) =>
    quantiseGraph(graph, table, floats);

/** Makes what `table` quantises one operator of Cutout. */
export const makeIntegerNetwork =
  (table: QuantisationTable): Pass =>
  (network) => {
    asIntegerNetwork(network.model, table, network.floats);
    network.operators = true;
  };

/** Makes the products of a transformer, or else the convolutions of a network, operators of Cutout in bf16. */
export const makeBf16: Pass = (network) => {
  if (isMostlyMatMuls(network.model)) makeBf16MatMuls(network);
  else asBf16Network(network.model, network.floats);
  network.operators = true;
};

/** Makes matrix products and attentions operators of Cutout in bf16. */
export const makeBf16MatMuls: Pass = (network) => {
  asBf16MatMuls(network.model, network.floats);
  network.operators = true;
};

/** Resizes SAM 2's decoder for square images of this side. */
export const resizeDecoderTo =
  (side: number): Pass =>
  ({ graph }) =>
    resizeDecoder(graph, side);

/** Returns a pass that runs `first`, or where that throws a RangeError `second`. `first` must then change nothing. */
export const eitherOf =
  (first: Pass, second: Pass): Pass =>
  (network: Network) => {
    try {
      first(network);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      second(network);
    }
  };
