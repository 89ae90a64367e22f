import { buildNode } from '../onnx/build.ts';
import { type FloatGraph, outputOf } from './floatGraph.ts';

/** Moves a ReLU behind a concatenation in front of it, where it can be fused into the convolutions. */
export function reluBeforeConcat(graph: FloatGraph): void {
  for (const relu of [...graph.graph.node]) {
    const joined = relu.opType === 'Relu' ? graph.maker(relu.input[0]) : undefined;
    if (joined?.opType !== 'Concat' || graph.onlyReader(outputOf(joined)) !== relu) continue;
    const parts = joined.input.map((name, at) => buildNode('Relu', [name], `${relu.name}/part ${at}`));
    joined.input = parts.map(outputOf);
    joined.output = [outputOf(relu)];
    graph.replace(joined, []);
    graph.replace(relu, [...parts, joined]);
  }
}
