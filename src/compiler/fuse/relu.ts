import { buildNode } from '../onnx/build.ts';
import { type FloatGraph, outputOf } from './floatGraph.ts';

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
