import { toBinary } from '@bufbuild/protobuf';
import { floatValue, GraphBuilder } from '../onnx/build.ts';
import { ModelProtoSchema } from '../onnx/onnx_pb.ts';
import { type Constant, readTfGraph, type TfGraph } from './graph.ts';
import { type Operand, operators } from './operators.ts';

/** Size of the network's input in pixels. */
interface ImageSize {
  readonly height: number;
  readonly width: number;
}

/** Follows the graph from a wanted tensor back to the input, visiting each node once. */
function emitter(graph: TfGraph, sink: GraphBuilder, size: ImageSize | undefined) {
  const done = new Set<string>();
  const image: { name?: string; dims?: readonly number[] } = {};
  let zoom: readonly [number, number] = [1, 1];

  function operandOf(input: string): Operand {
    const name = input.replace(/:0$/, '');
    const constant: Constant | undefined = graph.constants.get(name);
    if (constant) return { kind: 'constant', constant };
    const node = graph.nodes.get(name);
    if (!node) throw new RangeError(`the graph has no tensor ${input}`);
    const [first = ''] = node.input;
    if (node.op === 'Identity') return operandOf(first);
    if (!done.has(name)) {
      done.add(name);
      if (node.op === 'Placeholder') {
        const [batch, height, width, channels] = (node.attr['shape']?.shape?.dim ?? []).map(
          ({ size }) => size,
        );
        if (height === undefined || width === undefined || channels === undefined)
          throw new RangeError(`${name} has no size`);
        const wanted = size ?? { height, width };
        zoom = [wanted.height / height, wanted.width / width];
        Object.assign(image, { name, dims: [batch, channels, wanted.height, wanted.width] });
      } else {
        const operator = operators[node.op];
        if (!operator) throw new RangeError(`${name} is a ${node.op}, which cannot be converted`);
        const inputs = node.input.filter((each) => !each.startsWith('^')).map(operandOf);
        operator({ node, inputs, sink, zoom });
      }
    }
    return { kind: 'tensor', name };
  }

  return { operandOf, image };
}

/**
 * Converts a TensorFlow.js graph model to an ONNX file: layout [N,H,W,C] becomes [N,C,H,W], and only what
 * `outputs` need is converted. Outputs keep the names of their tensors. The input has `size`, or the model's
 * own size, and every map scales with it. Throws a RangeError that names the node for an operator or
 * attribute that operators.ts does not support, and for a map whose size would not be an integer.
 */
export function tfjsToOnnx(
  json: string,
  weights: Uint8Array,
  outputs: readonly string[],
  size?: ImageSize,
): Uint8Array {
  const graph = readTfGraph(json, weights);
  const builder = new GraphBuilder();
  const { operandOf, image } = emitter(graph, builder, size);
  const names = outputs.map((name) => {
    const operand = operandOf(name);
    if (operand.kind === 'constant') throw new RangeError(`the output ${name} is constant`);
    return operand.name;
  });
  if (image.name === undefined || image.dims === undefined)
    throw new RangeError('no output depends on an image');
  const values = names.map((name) => floatValue(name));
  return toBinary(ModelProtoSchema, builder.model('network', floatValue(image.name, image.dims), values));
}
