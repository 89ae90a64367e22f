import type { GraphProto } from '../onnx/onnx_pb.ts';
import { dropUnused } from '../onnx/prune.ts';
import { fuseHardActivations, reluBeforeConcat } from './activations.ts';
import { padDepthwiseChannels } from './channels.ts';
import { foldFactors } from './factors.ts';
import { FloatGraph } from './floatGraph.ts';

/**
 * Rewrites a float32 graph so that ONNX Runtime can keep its maps in the blocked layout NCHWc throughout
 * (decision 0205). The result is the same up to the order of rounding.
 */
export function fuse(graph: GraphProto): void {
  const floats = new FloatGraph(graph);
  fuseHardActivations(floats);
  foldFactors(floats);
  reluBeforeConcat(floats);
  padDepthwiseChannels(floats);
  dropUnused(graph);
}
