import { allNodes } from './graph.ts';
import type { ModelProto } from './onnx_pb.ts';

/** Operators that mean the same in the operator sets 11 to 13. */
const SAME = new Set(['Add', 'Concat', 'Constant', 'Conv', 'MaxPool', 'Relu', 'Resize', 'Sigmoid']);

/**
 * Returns the version of the standard operators that a network is written in, after raising it to 13 where all of its operators
 * mean the same there.
 */
export function raiseOperatorSet({ graph, opsetImport }: ModelProto): bigint {
  const standard = opsetImport.find(({ domain }) => domain === '');
  if (!standard || !graph) return 0n;
  const same = [...allNodes(graph)].every(({ domain, opType }) => domain === '' && SAME.has(opType));
  if (same && standard.version >= 11n && standard.version < 13n) standard.version = 13n;
  return standard.version;
}
