import { create } from '@bufbuild/protobuf';
import { FLOAT, INT64 } from './graph.ts';
import {
  type AttributeProto,
  AttributeProtoSchema,
  GraphProtoSchema,
  type ModelProto,
  ModelProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  OperatorSetIdProtoSchema,
  type TensorProto,
  TensorProtoSchema,
  TensorShapeProto_DimensionSchema,
  TypeProto_TensorSchema,
  type ValueInfoProto,
  ValueInfoProtoSchema,
} from './onnx_pb.ts';

/** Attribute types, numbered as in the ONNX standard. */
const TYPES = { float: 1, int: 2, text: 3, ints: 7 } as const;

/** Value of an attribute: text, integer, list of integers or float32. */
type Setting = string | number | readonly number[] | { readonly float: number };

type Settings = Readonly<Record<string, Setting>>;

function attributeOf(name: string, value: Setting): AttributeProto {
  if (typeof value === 'string')
    return create(AttributeProtoSchema, { name, type: TYPES.text, s: Buffer.from(value) });
  if (typeof value === 'number')
    return create(AttributeProtoSchema, { name, type: TYPES.int, i: BigInt(value) });
  if ('float' in value) return create(AttributeProtoSchema, { name, type: TYPES.float, f: value.float });
  return create(AttributeProtoSchema, { name, type: TYPES.ints, ints: value.map(BigInt) });
}

/** Returns a node with one output, which has the node's name. */
export function buildNode(
  opType: string,
  input: readonly string[],
  output: string,
  settings: Settings = {},
): NodeProto {
  return create(NodeProtoSchema, {
    name: output,
    opType,
    input: [...input],
    output: [output],
    attribute: Object.entries(settings).map(([name, value]) => attributeOf(name, value)),
  });
}

/** Returns a node of Cutout's own making, named after its first output. */
export function newNode(
  opType: string,
  input: readonly string[],
  output: readonly string[],
  settings: Settings = {},
): NodeProto {
  const node = buildNode(opType, input, `cutout/${output[0]}`, settings);
  node.output = [...output];
  return node;
}

/** Returns a tensor of `data`, values as ONNX stores them, little-endian, which is referenced, not copied. */
export function rawTensor(
  name: string,
  dataType: number,
  dims: readonly (bigint | number)[],
  data: ArrayBufferView,
): TensorProto {
  const rawData = new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
  return create(TensorProtoSchema, { name, dims: dims.map(BigInt), dataType, rawData });
}

/** Returns a float32 initializer of `values`, which are referenced; no dimensions means a scalar. */
export const floatTensor = (name: string, dims: readonly number[], values: Float32Array): TensorProto =>
  rawTensor(name, FLOAT, dims, values);

/** Returns a list of 64-bit integers. */
export const int64Tensor = (name: string, values: readonly bigint[]): TensorProto =>
  create(TensorProtoSchema, {
    name,
    dims: [BigInt(values.length)],
    dataType: INT64,
    int64Data: [...values],
  });

/** Returns a float32 input or output; without `dims` its shape is left to shape inference. */
export function floatValue(name: string, dims?: readonly number[]): ValueInfoProto {
  const shape = dims && {
    dim: dims.map((side) =>
      create(TensorShapeProto_DimensionSchema, { value: { case: 'dimValue', value: BigInt(side) } }),
    ),
  };
  const value = create(TypeProto_TensorSchema, { elemType: FLOAT, ...(shape && { shape }) });
  return create(ValueInfoProtoSchema, { name, type: { value: { case: 'tensorType', value } } });
}

/** A network under construction, whose methods return the names of what they add. */
export class GraphBuilder {
  readonly nodes: NodeProto[] = [];
  readonly #initializers: TensorProto[] = [];

  /** Adds a node with one output of this name. */
  node(
    opType: string,
    inputs: readonly string[],
    output: string,
    settings: Settings = {},
    domain = '',
  ): string {
    this.nodes.push(Object.assign(buildNode(opType, inputs, output, settings), { domain }));
    return output;
  }

  floats(dims: readonly number[], values: Float32Array): string {
    return this.#add(floatTensor(`constant_${this.#initializers.length}`, dims, values));
  }

  integers(values: readonly number[]): string {
    return this.#add(int64Tensor(`shape_${this.#initializers.length}`, values.map(BigInt)));
  }

  #add(tensor: TensorProto): string {
    this.#initializers.push(tensor);
    return tensor.name;
  }

  /** Returns the network in the operator set 17, with operators of these `domains` beside the standard ones. */
  model(
    name: string,
    input: ValueInfoProto,
    output: ValueInfoProto[],
    domains: readonly string[] = [],
  ): ModelProto {
    const standard = create(OperatorSetIdProtoSchema, { domain: '', version: 17n });
    const others = domains.map((domain) => create(OperatorSetIdProtoSchema, { domain, version: 1n }));
    const [node, initializer] = [this.nodes, this.#initializers];
    return create(ModelProtoSchema, {
      irVersion: 8n,
      producerName: 'cutout',
      opsetImport: [standard, ...others],
      graph: create(GraphProtoSchema, { name, node, initializer, input: [input], output }),
    });
  }
}
