import { buildNode } from '../onnx/build.ts';
import type { NodeProto } from '../onnx/onnx_pb.ts';
import { besides, type FloatGraph, outputOf } from './floatGraph.ts';

/** Multiplies a constant input of a node. */
function scale(graph: FloatGraph, node: NodeProto, input: number, factor: number): boolean {
  const name = node.input[input];
  const constant = graph.constant(name);
  if (!constant) return false;
  const values = constant.values.map((value) => value * factor);
  node.input[input] = graph.add(`${name} of ${node.name}, scaled`, { ...constant, values });
  return true;
}

/** Divides what a convolution gives, if only `reader` sees it. */
function divide(graph: FloatGraph, tensor: string, reader: NodeProto, factor: number): boolean {
  const convolution = graph.maker(tensor);
  if (convolution?.opType !== 'Conv' || graph.onlyReader(tensor) !== reader) return false;
  return convolution.input.slice(1).every((_, at) => scale(graph, convolution, at + 1, 1 / factor));
}

/** Whether `reader` would give its result divided by the factor if it read `tensor` without it. */
function passes(graph: FloatGraph, reader: NodeProto, tensor: string, factor: number): boolean {
  if (reader.opType === 'GlobalAveragePool') return true;
  const other = besides(reader, tensor);
  if (other === undefined || graph.constant(other)) return false;
  if (reader.opType === 'Mul') return true;
  return reader.opType === 'Add' && divide(graph, other, reader, factor);
}

/** Lets `reader` do without the factor of `product`, a constant times `plain`. */
function move(graph: FloatGraph, product: NodeProto, plain: string, factor: number, reader: NodeProto): void {
  const tensor = outputOf(product);
  const constant = reader.input.findIndex((name) => graph.constant(name) !== undefined);
  if (
    (reader.opType === 'Conv' && reader.input[0] === tensor) ||
    (reader.opType === 'Mul' && constant >= 0)
  ) {
    if (!scale(graph, reader, constant, factor)) return;
  } else if (passes(graph, reader, tensor, factor)) {
    const output = outputOf(reader);
    reader.output = [`${output}/plain`];
    const moved = graph.add(`${output}/factor`, { dims: [], values: Float32Array.of(factor) });
    graph.replace(reader, [reader, buildNode('Mul', [`${output}/plain`, moved], output)]);
  } else return;
  reader.input = reader.input.map((name) => (name === tensor ? plain : name));
}

/**
 * Moves multiplications by one number into the weights of the convolutions behind them, through means, products and sums
 * on the way. One whose result is an output, or read by anything else, stays for that.
 */
export function foldFactors(graph: FloatGraph): void {
  // A factor that moved on is a new node behind the one that is looked at.
  for (const node of graph.graph.node) {
    if (node.opType !== 'Mul') continue;
    const plain = node.input.find((name) => graph.constant(name) === undefined);
    const factor = plain === undefined ? undefined : graph.number(besides(node, plain));
    if (plain === undefined || factor === undefined) continue;
    for (const reader of graph.readers(outputOf(node))) move(graph, node, plain, factor, reader);
  }
}
