import { buildNode } from '../onnx/build.ts';
import type { NodeProto } from '../onnx/onnx_pb.ts';
import { type FloatGraph, otherInputOf, outputOf } from './floatGraph.ts';

/** Returns the tensor x, if `clip` computes max(0, min(6, x + 3)). */
function shifted(graph: FloatGraph, clip: NodeProto): string | undefined {
  if (clip.opType !== 'Clip' || graph.number(clip.input[1]) !== 0 || graph.number(clip.input[2]) !== 6) {
    return undefined;
  }
  const sum = graph.producer(clip.input[0]);
  if (sum?.opType !== 'Add') return undefined;
  return sum.input.find((x) => graph.number(otherInputOf(sum, x)) === 3);
}

/** Returns the factor c, if `node` computes c * x with a constant c. */
function factorOf(graph: FloatGraph, node: NodeProto | undefined, x: string): number | undefined {
  return node?.opType === 'Mul' ? graph.number(otherInputOf(node, x)) : undefined;
}

/**
 * Rewrites c * clip(x + 3, 0, 6) as 6c * HardSigmoid(x), and its product with x as 6c * HardSwish(x), which
 * ONNX Runtime fuses into the preceding convolution. c is about 1/6; foldFactors removes what remains of it.
 */
export function fuseHardActivations(graph: FloatGraph): void {
  for (const clip of [...graph.graph.node]) {
    const x = shifted(graph, clip);
    const gate = clip.output[0] ?? '';
    const product = graph.soleConsumer(gate);
    if (x === undefined || product?.opType !== 'Mul') continue;
    const other = otherInputOf(product, gate);
    const constant = graph.number(other);
    const sixth = constant ?? factorOf(graph, graph.producer(other), x);
    if (sixth === undefined) continue;
    const output = outputOf(product);
    const plain = `${output}/plain`;
    graph.replace(product, [
      constant === undefined
        ? buildNode('HardSwish', [x], plain)
        : buildNode('HardSigmoid', [x], plain, { alpha: { float: 1 / 6 }, beta: { float: 0.5 } }),
      buildNode(
        'Mul',
        [plain, graph.add(`${output}/factor`, { dims: [], values: Float32Array.of(6 * sixth) })],
        output,
      ),
    ]);
  }
}

/** Replaces a ReLU after a Concat by one ReLU on each input of the Concat, where it can be fused into a convolution. */
export function reluBeforeConcat(graph: FloatGraph): void {
  for (const relu of [...graph.graph.node]) {
    const joined = relu.opType === 'Relu' ? graph.producer(relu.input[0]) : undefined;
    if (joined?.opType !== 'Concat' || graph.soleConsumer(outputOf(joined)) !== relu) continue;
    const parts = joined.input.map((name, at) => buildNode('Relu', [name], `${relu.name}/part ${at}`));
    joined.input = parts.map(outputOf);
    joined.output = [outputOf(relu)];
    graph.replace(joined, []);
    graph.replace(relu, [...parts, joined]);
  }
}
