import { create, toBinary } from '@bufbuild/protobuf';
import { buildNode, floatTensor, floatValue, int64Tensor, type Setting } from '../onnx/build.ts';
import {
  GraphProtoSchema,
  ModelProtoSchema,
  type NodeProto,
  OperatorSetIdProtoSchema,
  type TensorProto,
} from '../onnx/onnx_pb.ts';
import { type Constant, readTfGraph, type TfGraph } from './graph.ts';
import { type Operand, operators, type Sink } from './operators.ts';

const OPSET = 17n;
const IR_VERSION = 8n;

class Writer implements Sink {
  readonly nodes: NodeProto[] = [];
  readonly initializers: TensorProto[] = [];

  node(
    opType: string,
    inputs: readonly string[],
    output: string,
    settings?: Readonly<Record<string, Setting>>,
  ) {
    this.nodes.push(buildNode(opType, inputs, output, settings));
    return output;
  }

  floats(dims: readonly number[], values: Float32Array): string {
    return this.#add((name) => floatTensor(name, dims, values));
  }

  integers(values: readonly number[]): string {
    return this.#add((name) => int64Tensor(name, values.map(BigInt)));
  }

  #add(make: (name: string) => TensorProto): string {
    const name = `constant ${this.initializers.length}`;
    this.initializers.push(make(name));
    return name;
  }
}

/** Size of the network's input in pixels. */
interface ImageSize {
  readonly height: number;
  readonly width: number;
}

/** Follows the graph from a wanted tensor back to the input, visiting each node once. */
function emitter(graph: TfGraph, sink: Sink, size: ImageSize | undefined) {
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
  const writer = new Writer();
  const { operandOf, image } = emitter(graph, writer, size);
  const names = outputs.map((name) => {
    const operand = operandOf(name);
    if (operand.kind === 'constant') throw new RangeError(`the output ${name} is constant`);
    return operand.name;
  });
  if (image.name === undefined || image.dims === undefined)
    throw new RangeError('no output depends on an image');
  const network = create(GraphProtoSchema, {
    name: 'network',
    node: writer.nodes,
    initializer: writer.initializers,
    input: [floatValue(image.name, image.dims)],
    output: names.map((name) => floatValue(name)),
  });
  const model = create(ModelProtoSchema, {
    irVersion: IR_VERSION,
    producerName: 'cutout',
    opsetImport: [create(OperatorSetIdProtoSchema, { domain: '', version: OPSET })],
    graph: network,
  });
  return toBinary(ModelProtoSchema, model);
}
