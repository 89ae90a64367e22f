import { clearField } from '@bufbuild/protobuf';
import { newNode } from './build.ts';
import {
  allNodes,
  allTensors,
  attribute,
  elementType,
  FLOAT,
  FLOAT16,
  INT64,
  setElementType,
  sortNodes,
  subgraphs,
} from './graph.ts';
import { type GraphProto, type NodeProto, type TensorProto, TensorProtoSchema } from './onnx_pb.ts';

/** Whether any tensor, value or cast of the graph is float16. */
export function hasHalf(graph: GraphProto): boolean {
  for (const tensor of allTensors(graph)) if (tensor.dataType === FLOAT16) return true;
  for (const node of allNodes(graph)) {
    if (node.opType === 'Cast' && attribute(node, 'to')?.i === BigInt(FLOAT16)) return true;
  }
  return [...graph.input, ...graph.output].some((value) => elementType(value) === FLOAT16);
}

/** Returns the element types of named values, as far as the graph states them. */
function knownTypes(graph: GraphProto): Map<string, number> {
  const types = new Map<string, number>();
  for (const value of [...graph.input, ...graph.output, ...graph.valueInfo]) {
    const type = elementType(value);
    if (type !== undefined) types.set(value.name, type);
  }
  for (const tensor of graph.initializer) types.set(tensor.name, tensor.dataType);
  for (const node of graph.node) {
    const [name] = node.output;
    if (name === undefined) continue;
    const constant = node.opType === 'Constant' ? attribute(node, 'value')?.t : undefined;
    if (constant) types.set(name, constant.dataType);
    if (node.opType === 'Cast') types.set(name, Number(attribute(node, 'to')?.i));
    if (node.opType === 'Shape' || node.opType === 'Size') types.set(name, INT64);
  }
  return types;
}

/** Moves float16 values stored one per int32 into raw bytes, the encoding that `halfWidener` reads. */
function toRaw(tensor: TensorProto): void {
  if (tensor.int32Data.length === 0) return;
  tensor.rawData = new Uint8Array(Uint16Array.from(tensor.int32Data).buffer);
  tensor.int32Data = [];
}

function renameInputs(graph: GraphProto, rename: (name: string) => string): void {
  for (const node of graph.node) {
    node.input = node.input.map(rename);
    for (const inner of subgraphs(node)) {
      renameInputs(inner, rename);
      for (const value of inner.output) value.name = rename(value.name);
    }
  }
}

/**
 * Removes casts between float16 and float32, which have no effect once all floats are float32. Outputs keep
 * their names.
 */
function dropFloatCasts(graph: GraphProto): void {
  const types = knownTypes(graph);
  const isFloat = (name: string) => types.get(name) === FLOAT || types.get(name) === FLOAT16;
  const alias = new Map<string, string>();
  graph.node = graph.node.filter((node) => {
    const [from] = node.input;
    const [name] = node.output;
    if (node.opType !== 'Cast' || from === undefined || name === undefined) return true;
    if (!isFloat(name) || !isFloat(from)) return true;
    alias.set(name, from);
    return false;
  });
  const root = (name: string): string => {
    const from = alias.get(name);
    return from === undefined ? name : root(from);
  };
  const outputs = new Set(graph.output.map((value) => value.name));
  const made = new Set(graph.node.flatMap((node) => node.output));
  const back = new Map<string, string>();
  const extra: NodeProto[] = [];
  for (const { name } of graph.output) {
    const from = root(name);
    if (from === name) continue;
    // A value that a node produces and that is wanted under one name takes it; all else is copied.
    if (made.has(from) && !outputs.has(from) && !back.has(from)) back.set(from, name);
    else extra.push(newNode('Identity', [from], [name]));
  }
  const rename = (name: string) => back.get(root(name)) ?? root(name);
  graph.node.push(...extra);
  for (const node of graph.node) {
    if (!extra.includes(node)) node.output = node.output.map((name) => back.get(name) ?? name);
  }
  renameInputs(graph, rename);
}

function retype(graph: GraphProto): void {
  for (const value of [...graph.input, ...graph.output]) {
    if (elementType(value) === FLOAT16) setElementType(value, FLOAT);
  }
  for (const node of graph.node) {
    for (const each of node.attribute) {
      const name = node.opType === 'Cast' ? 'to' : 'dtype';
      if (each.name === name && each.i === BigInt(FLOAT16)) each.i = BigInt(FLOAT);
    }
    for (const inner of subgraphs(node)) retype(inner);
  }
}

/**
 * Rewrites a float16 graph to float32: weights, constants, types and casts. The weights of the outermost
 * graph, which are most of the file, only change their type here: the tensors returned still hold binary16,
 * and are widened one at a time while the file is written (write.ts).
 */
export function widen(graph: GraphProto, widenBytes: (half: Uint8Array) => Uint8Array): Set<TensorProto> {
  dropFloatCasts(graph);
  retype(graph);
  const postponed = new Set<TensorProto>();
  for (const tensor of allTensors(graph)) {
    if (tensor.dataType !== FLOAT16) continue;
    toRaw(tensor);
    tensor.dataType = FLOAT;
    postponed.add(tensor);
  }
  const outermost = new Set(graph.initializer);
  for (const tensor of postponed) {
    if (outermost.has(tensor)) continue;
    if (tensor.rawData.length === 0) clearField(tensor, TensorProtoSchema.field.rawData);
    else tensor.rawData = widenBytes(tensor.rawData);
    postponed.delete(tensor);
  }
  return postponed;
}

/** Gives a float16 graph float32 input and outputs, which the engine requires, and sorts its nodes. */
export function floatBorders(graph: GraphProto): void {
  const before: NodeProto[] = [];
  const after: NodeProto[] = [];
  for (const value of [...graph.input.slice(0, 1), ...graph.output]) {
    if (elementType(value) !== FLOAT16) continue;
    setElementType(value, FLOAT);
    const inner = `${value.name}/half`;
    const rename = (name: string) => (name === value.name ? inner : name);
    renameInputs(graph, rename);
    if (value === graph.input[0]) before.push(newNode('Cast', [value.name], [inner], { to: FLOAT16 }));
    else {
      for (const node of graph.node) node.output = node.output.map(rename);
      after.push(newNode('Cast', [inner], [value.name], { to: FLOAT }));
    }
  }
  graph.node = [...before, ...graph.node, ...after];
  sortNodes(graph);
}
