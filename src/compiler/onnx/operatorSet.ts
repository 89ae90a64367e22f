import { allNodes } from './graph.ts';
import type { ModelProto } from './onnx_pb.ts';

/** Operators that mean the same in the operator sets 11 to 13. */
const SAME = new Set(['Add', 'Concat', 'Constant', 'Conv', 'MaxPool', 'Relu', 'Resize', 'Sigmoid']);

/** The first one that has 8 bits for each channel. */
const NEEDED = 13n;

/** Raises a network to the operator set 13, if all of its operators mean the same there. Throws a RangeError for another older one. */
export function raiseOperatorSet({ graph, opsetImport }: ModelProto): void {
  const standard = opsetImport.find(({ domain }) => domain === '');
  if (!standard || !graph) throw new RangeError('it names no operator set');
  const same = [...allNodes(graph)].every(({ domain, opType }) => domain === '' && SAME.has(opType));
  if (same && standard.version >= 11n && standard.version < NEEDED) standard.version = NEEDED;
  if (standard.version < NEEDED)
    throw new RangeError(`it is written in operator set ${standard.version}, 8 bits need ${NEEDED}`);
}
