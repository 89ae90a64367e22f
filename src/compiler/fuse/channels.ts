import { attribute } from '../onnx/graph.ts';
import type { NodeProto } from '../onnx/onnx_pb.ts';
import { type FloatGraph, type Floats, groupsOf, outputOf } from './floatGraph.ts';

/** Channels are padded to a multiple of this; ONNX Runtime's blocks have 8 or 16, depending on the processor. */
const BLOCK = 16;
/** Depthwise convolutions whose channels are a multiple of this use the fast kernels as they are. */
const FAST_MULTIPLE = 8;

/** Pads one axis of a constant with zeros. */
function padded({ dims, values }: Floats, axis: number, length: number): Floats {
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

function pad(graph: FloatGraph, node: NodeProto, axis: number, length: number): void {
  const constants = constantsOf(graph, node) ?? [];
  // A bias has the output axis only.
  const touched = axis === 0 ? constants : constants.slice(0, 1);
  touched.forEach((constant, at) => {
    const name = `${node.input[at + 1]} of ${node.name}, longer`;
    node.input[at + 1] = graph.add(name, padded(constant, axis, length));
  });
}

const isDense = (graph: FloatGraph, node: NodeProto | undefined): node is NodeProto =>
  constantsOf(graph, node) !== undefined && node !== undefined && groupsOf(node) === 1;

/** Returns the convolution, with or without a ReLU behind it, that produces a tensor which `consumer` alone consumes. */
function source(graph: FloatGraph, tensor: string | undefined, consumer: NodeProto): NodeProto | undefined {
  const producer = graph.producer(tensor);
  if (producer === undefined || graph.soleConsumer(outputOf(producer)) !== consumer) return undefined;
  return producer.opType === 'Relu' ? source(graph, producer.input[0], producer) : producer;
}

/**
 * Pads depthwise convolutions between two other convolutions with channels of weight and bias 0, up to a
 * whole block. ONNX Runtime runs its fast kernels only on whole blocks, and otherwise reorders the layout of
 * all channels before and after the node.
 */
export function padDepthwiseChannels(graph: FloatGraph): void {
  for (const node of graph.graph.node) {
    const channels = constantsOf(graph, node)?.[0]?.dims[0];
    if (channels === undefined || groupsOf(node) !== channels || channels % FAST_MULTIPLE === 0) continue;
    const before = source(graph, node.input[0], node);
    const consumers = graph.consumers(outputOf(node));
    const isHidden = consumers.length > 0 && !graph.graph.output.some(({ name }) => name === node.output[0]);
    if (!isDense(graph, before) || !isHidden || !consumers.every((consumer) => isDense(graph, consumer)))
      continue;
    const whole = Math.ceil(channels / BLOCK) * BLOCK;
    pad(graph, before, 0, whole);
    pad(graph, node, 0, whole);
    const group = attribute(node, 'group');
    if (group) group.i = BigInt(whole);
    for (const consumer of consumers) pad(graph, consumer, 1, whole);
  }
}
