import { toBinary } from '@bufbuild/protobuf';
import { floatValue, GraphBuilder } from '../onnx/build.ts';
import { ModelProtoSchema, type ValueInfoProto } from '../onnx/onnx_pb.ts';
import { readTfGraph, type TfNode } from './graph.ts';
import { type Operand, operators } from './operators.ts';

/** Size of the network's input in pixels. */
interface ImageSize {
  readonly height: number;
  readonly width: number;
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
  const sink = new GraphBuilder();
  const done = new Set<string>();
  let image: ValueInfoProto | undefined;
  let zoom: readonly [number, number] = [1, 1];

  const place = ({ name, attr }: TfNode) => {
    const [batch = Number.NaN, ...sides] = (attr['shape']?.shape?.dim ?? []).map(({ size }) => size);
    const [height, width, channels] = sides;
    if (height === undefined || width === undefined || channels === undefined)
      throw new RangeError(`${name} has no size`);
    const wanted = size ?? { height, width };
    zoom = [wanted.height / height, wanted.width / width];
    image = floatValue(name, [batch, channels, wanted.height, wanted.width]);
  };

  /** Follows the graph from a wanted tensor back to the input, visiting each node once. */
  const operandOf = (input: string): Operand => {
    const name = input.replace(/:0$/, '');
    const constant = graph.constants.get(name);
    if (constant) return { kind: 'constant', constant };
    const node = graph.nodes.get(name);
    if (!node) throw new RangeError(`the graph has no tensor ${input}`);
    if (node.op === 'Identity') return operandOf(node.input[0] ?? '');
    if (!done.has(name)) {
      done.add(name);
      const operator = operators[node.op];
      if (node.op === 'Placeholder') place(node);
      else if (!operator) throw new RangeError(`${name} is a ${node.op}, which cannot be converted`);
      else {
        const inputs = node.input.filter((each) => !each.startsWith('^')).map(operandOf);
        operator({ node, inputs, sink, zoom });
      }
    }
    return { kind: 'tensor', name };
  };

  const values = outputs.map((name) => {
    const operand = operandOf(name);
    if (operand.kind === 'constant') throw new RangeError(`the output ${name} is constant`);
    return floatValue(operand.name);
  });
  if (!image) throw new RangeError('no output depends on an image');
  return toBinary(ModelProtoSchema, sink.model('network', image, values));
}
