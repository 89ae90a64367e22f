import { buildNode } from '../onnx/build.ts';
import type { NodeProto } from '../onnx/onnx_pb.ts';
import { type FloatGraph, otherInputOf, outputOf } from './floatGraph.ts';

/** Multiplies a constant input of a node by `factor`. False if the input is not a constant. */
function scale(graph: FloatGraph, node: NodeProto, input: number, factor: number): boolean {
  const name = node.input[input];
  const constant = graph.constant(name);
  if (!constant) return false;
  const values = constant.values.map((value) => value * factor);
  node.input[input] = graph.add(`${name} of ${node.name}, scaled`, { ...constant, values });
  return true;
}

/** Divides the output of a convolution by `factor`, if `reader` is its only consumer. */
function divide(graph: FloatGraph, tensor: string, reader: NodeProto, factor: number): boolean {
  const convolution = graph.producer(tensor);
  if (convolution?.opType !== 'Conv' || graph.soleConsumer(tensor) !== reader) return false;
  return convolution.input.slice(1).every((_, at) => scale(graph, convolution, at + 1, 1 / factor));
}

/** Whether the output of `reader` is divided by the factor when it reads `tensor` without it. */
function passes(graph: FloatGraph, reader: NodeProto, tensor: string, factor: number): boolean {
  if (reader.opType === 'GlobalAveragePool') return true;
  const other = otherInputOf(reader, tensor);
  if (other === undefined || graph.constant(other)) return false;
  if (reader.opType === 'Mul') return true;
  return reader.opType === 'Add' && divide(graph, other, reader, factor);
}

/** Moves the factor of `product`, a constant times `plain`, behind `reader`. */
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
 * Folds multiplications by a scalar into the weights of the convolutions that follow, across means, products
 * and sums. A multiplication whose result is a graph output or has other consumers stays for those.
 */
export function foldFactors(graph: FloatGraph): void {
  // Moved factors are new nodes behind the current one, so this loop reaches them.
  for (const node of graph.graph.node) {
    if (node.opType !== 'Mul') continue;
    const plain = node.input.find((name) => graph.constant(name) === undefined);
    const factor = plain === undefined ? undefined : graph.number(otherInputOf(node, plain));
    if (plain === undefined || factor === undefined) continue;
    for (const reader of graph.consumers(outputOf(node))) move(graph, node, plain, factor, reader);
  }
}
