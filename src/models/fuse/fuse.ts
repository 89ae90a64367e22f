import type { GraphProto } from '../onnx/onnx_pb.ts';
import { dropUnused } from '../onnx/prune.ts';
import { fillBlocks } from './channels.ts';
import { foldFactors } from './factors.ts';
import { FloatGraph } from './floatGraph.ts';
import { fuseHardActivations } from './hard.ts';
import { reluBeforeConcat } from './relu.ts';

/**
 * Rewrites a graph of 32-bit floats so that ONNX Runtime can keep its maps in blocks of channels (NCHWc) from one end to the
 * other (docs/research/0174). What it computes stays the same but for the order of roundings.
 */
export function fuse(graph: GraphProto): void {
  const floats = new FloatGraph(graph);
  fuseHardActivations(floats);
  foldFactors(floats);
  reluBeforeConcat(floats);
  fillBlocks(floats);
  dropUnused(graph);
}
