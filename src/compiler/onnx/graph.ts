import type { AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto } from './onnx_pb.ts';

/** Element types of TensorProto.data_type, numbered as in the ONNX standard. */
export const FLOAT = 1;
export const UINT8 = 2;
export const INT8 = 3;
export const INT32 = 6;
export const INT64 = 7;
export const FLOAT16 = 10;

/** The domain of Cutout's operators (native/ort/custom_operators.h). */
export const OPERATORS_DOMAIN = 'cutout';

export function attribute(node: NodeProto, name: string): AttributeProto | undefined {
  return node.attribute.find((each) => each.name === name);
}

/** The integers of an attribute that is a list of them; none if it is absent. */
export const intsOf = (node: NodeProto, name: string): number[] =>
  attribute(node, name)?.ints.map(Number) ?? [];

/** The text of an attribute; empty if it is absent. */
export const textOf = (node: NodeProto, name: string): string =>
  new TextDecoder().decode(attribute(node, name)?.s);

/** Graphs nested in a node (If, Loop, Scan). */
export function subgraphs(node: NodeProto): GraphProto[] {
  return node.attribute.flatMap((each) => (each.g ? [each.g, ...each.graphs] : each.graphs));
}

/** Returns all nodes of a graph and of the graphs nested in it. */
export function* allNodes(graph: GraphProto): Generator<NodeProto> {
  for (const node of graph.node) {
    yield node;
    for (const inner of subgraphs(node)) yield* allNodes(inner);
  }
}

/** Returns all tensors of a graph and of the graphs nested in it: initializers and attributes. */
export function* allTensors(graph: GraphProto): Generator<TensorProto> {
  yield* graph.initializer;
  for (const node of graph.node) {
    for (const each of node.attribute) if (each.t) yield each.t;
    for (const inner of subgraphs(node)) yield* allTensors(inner);
  }
}

/** Dimensions of a tensor as they are declared; undefined without a declared shape. */
export const shapeOf = ({ type }: ValueInfoProto) =>
  type?.value.case === 'tensorType' ? type.value.value.shape?.dim : undefined;

export function elementType(value: ValueInfoProto): number | undefined {
  return value.type?.value.case === 'tensorType' ? value.type.value.value.elemType : undefined;
}

export function setElementType(value: ValueInfoProto, type: number): void {
  if (value.type?.value.case === 'tensorType') value.type.value.value.elemType = type;
}

/** Values of a small INT64 tensor, in either of its encodings. */
export function int64Values(tensor: TensorProto): bigint[] | undefined {
  if (tensor.dataType !== INT64) return undefined;
  if (tensor.rawData.length === 0) return tensor.int64Data;
  const { buffer, byteOffset, byteLength } = tensor.rawData;
  const view = new DataView(buffer, byteOffset, byteLength);
  return Array.from({ length: byteLength / 8 }, (_, at) => view.getBigInt64(at * 8, true));
}

/** Values of a tensor of 32-bit floats, in either of its encodings, in a new array; undefined for one of another type. */
export function floatValues(tensor: TensorProto | undefined): Float32Array | undefined {
  if (tensor?.dataType !== FLOAT) return undefined;
  if (tensor.rawData.length === 0) return Float32Array.from(tensor.floatData);
  return new Float32Array(Uint8Array.from(tensor.rawData).buffer);
}

/** Constants of the outermost graph by name: initializers and the results of Constant nodes. */
export function constants(graph: GraphProto): Map<string, TensorProto> {
  const found = new Map(graph.initializer.map((tensor) => [tensor.name, tensor]));
  for (const node of graph.node) {
    const tensor = node.opType === 'Constant' ? attribute(node, 'value')?.t : undefined;
    if (tensor && node.output[0] !== undefined) found.set(node.output[0], tensor);
  }
  return found;
}

/**
 * Puts every node behind those whose outputs it reads, and otherwise keeps their order. ONNX requires it, and converters to
 * float16 append their casts instead. Throws a RangeError where nodes read each other in a circle.
 */
export function sortNodes(graph: GraphProto): void {
  const producers = producersOf(graph);
  // The name of an optional value that is left out.
  producers.delete('');
  const read = (node: NodeProto) => [node, ...subgraphs(node).flatMap((inner) => [...allNodes(inner)])];
  const sorted = new Set<NodeProto>();
  const waiting = new Set<NodeProto>();
  for (const first of graph.node) {
    const stack = [first];
    for (let node = stack.at(-1); node !== undefined; node = stack.at(-1)) {
      const before = read(node)
        .flatMap(({ input }) => input)
        .flatMap((name) => producers.get(name) ?? [])
        .filter((producer) => producer !== node && !sorted.has(producer));
      if (before.length === 0) {
        sorted.add(node);
        stack.pop();
      } else if (waiting.has(node)) {
        throw new RangeError('its nodes read each other in a circle');
      } else {
        waiting.add(node);
        stack.push(...before.reverse());
      }
    }
  }
  graph.node = [...sorted];
}

/** Returns the nodes of the outermost graph by the names of what they make; '' is an optional value that is left out. */
export function producersOf(graph: GraphProto): Map<string, NodeProto> {
  return new Map(graph.node.flatMap((node) => node.output.map((name) => [name, node] as const)));
}

/** Finds the node that alone reads a tensor of the outermost graph; undefined for an output of the graph. */
export function onlyConsumerOf(graph: GraphProto): (name: string) => NodeProto | undefined {
  const consumers = consumersOf(graph);
  const outputs = new Set(graph.output.map(({ name }) => name));
  return (name) => {
    const [node, another] = consumers.get(name) ?? [];
    return another === undefined && !outputs.has(name) ? node : undefined;
  };
}

/** Returns the nodes of the outermost graph that read a tensor, by its name, in the order of the graph; each node once. */
export function consumersOf(graph: GraphProto): Map<string, NodeProto[]> {
  const consumers = new Map<string, NodeProto[]>();
  for (const node of graph.node) {
    for (const name of new Set(node.input)) {
      const known = consumers.get(name);
      if (known) known.push(node);
      else consumers.set(name, [node]);
    }
  }
  return consumers;
}
