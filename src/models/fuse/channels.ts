import { attribute } from '../onnx/graph.ts';
import type { NodeProto } from '../onnx/onnx_pb.ts';
import { type FloatGraph, type Floats, groupsOf, outputOf } from './floatGraph.ts';

/** Channels are padded to a multiple of this; ONNX Runtime's blocks have 8 or 16, depending on the processor. */
const BLOCK = 16;
/** Depthwise convolutions whose channels are a multiple of this use the fast kernels as they are. */
const TAKEN = 8;

/** Pads one axis of a constant with zeros. */
function lengthened({ dims, values }: Floats, axis: number, length: number): Floats {
  const inner = dims.slice(axis + 1).reduce((product, side) => product * side, 1);
  const old = (dims[axis] ?? 1) * inner;
  const result = new Float32Array((values.length / old) * length * inner);
  for (let at = 0; at * old < values.length; at++)
    result.set(values.subarray(at * old, (at + 1) * old), at * length * inner);
  return { dims: dims.with(axis, length), values: result };
}

/** Weights and bias of a convolution, if both are constants. */
function constantsOf(graph: FloatGraph, node: NodeProto | undefined): readonly Floats[] | undefined {
  if (node?.opType !== 'Conv') return undefined;
  const constants = node.input.slice(1).map((name) => graph.constant(name));
  return constants.every((constant) => constant !== undefined) ? constants : undefined;
}

function lengthen(graph: FloatGraph, node: NodeProto, axis: number, length: number): void {
  const constants = constantsOf(graph, node) ?? [];
  // A bias has the output axis only.
  const touched = axis === 0 ? constants : constants.slice(0, 1);
  touched.forEach((constant, at) => {
    const name = `${node.input[at + 1]} of ${node.name}, longer`;
    node.input[at + 1] = graph.add(name, lengthened(constant, axis, length));
  });
}

const isDense = (graph: FloatGraph, node: NodeProto | undefined): node is NodeProto =>
  constantsOf(graph, node) !== undefined && node !== undefined && groupsOf(node) === 1;

/** The convolution, with or without a ReLU behind it, that produces a tensor which `reader` alone consumes. */
function source(graph: FloatGraph, tensor: string | undefined, reader: NodeProto): NodeProto | undefined {
  const maker = graph.maker(tensor);
  if (maker === undefined || graph.onlyReader(outputOf(maker)) !== reader) return undefined;
  return maker.opType === 'Relu' ? source(graph, maker.input[0], maker) : maker;
}

/**
 * Pads depthwise convolutions between two other convolutions with channels of weight and bias 0, up to a
 * whole block. ONNX Runtime runs its fast kernels only on whole blocks, and otherwise reorders the layout of
 * all channels before and after the node.
 */
export function fillBlocks(graph: FloatGraph): void {
  for (const node of graph.graph.node) {
    const channels = constantsOf(graph, node)?.[0]?.dims[0];
    if (channels === undefined || groupsOf(node) !== channels || channels % TAKEN === 0) continue;
    const before = source(graph, node.input[0], node);
    const readers = graph.readers(outputOf(node));
    const isHidden = readers.length > 0 && !graph.graph.output.some(({ name }) => name === node.output[0]);
    if (!isDense(graph, before) || !isHidden || !readers.every((reader) => isDense(graph, reader))) continue;
    const whole = Math.ceil(channels / BLOCK) * BLOCK;
    lengthen(graph, before, 0, whole);
    lengthen(graph, node, 0, whole);
    const group = attribute(node, 'group');
    if (group) group.i = BigInt(whole);
    for (const reader of readers) lengthen(graph, reader, 1, whole);
  }
}
