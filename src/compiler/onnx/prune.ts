import { floatValue } from './build.ts';
import { allNodes, producersOf, subgraphs } from './graph.ts';
import type { GraphProto, NodeProto } from './onnx_pb.ts';

/** Names that a node reads, including those of its nested graphs. */
function reads(node: NodeProto): string[] {
  return [
    ...node.input,
    ...subgraphs(node).flatMap((graph) => [
      ...graph.node.flatMap(reads),
      ...graph.output.map((value) => value.name),
    ]),
  ];
}

/**
 * Makes `names`, in this order, the only outputs. A tensor that was not an output becomes one of type
 * float32. Throws a RangeError for a name that no node produces.
 */
export function keepOutputs(graph: GraphProto, names: readonly string[]): void {
  graph.output = names.map((name) => {
    const known = graph.output.find((value) => value.name === name);
    if (known) return known;
    if (!graph.node.some((node) => node.output.includes(name))) {
      throw new RangeError(`the graph has no tensor named ${name}`);
    }
    return floatValue(name);
  });
}

/** Drops nodes and initializers that no output depends on, and the recorded shapes of intermediate tensors. */
export function dropUnused(graph: GraphProto): void {
  const producer = producersOf(graph);
  const used = new Set<NodeProto>();
  const names = new Set<string>();
  const open = graph.output.map((value) => value.name);
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (names.has(name)) continue;
    names.add(name);
    const node = producer.get(name);
    if (!node || used.has(node)) continue;
    used.add(node);
    open.push(...reads(node));
  }
  graph.node = graph.node.filter((node) => used.has(node));
  graph.initializer = graph.initializer.filter((tensor) => names.has(tensor.name));
  // Files of IR version 3 list initializers among the inputs; the first input is the image and always stays.
  graph.input = graph.input.filter((value, at) => at === 0 || names.has(value.name));
  graph.valueInfo = [];
}

/**
 * Makes what reads a copy of a tensor (Identity) read the tensor. Exporters write weights that several layers share so, which
 * hides that they are constants.
 */
export function resolveIdentities(graph: GraphProto): void {
  const graphs = [graph, ...[...allNodes(graph)].flatMap(subgraphs)];
  const outputs = new Set(graphs.flatMap(({ output }) => output.map(({ name }) => name)));
  const originals = new Map<string, string>();
  graph.node = graph.node.filter(({ opType, domain, input: [from = ''], output: [to = ''] }) => {
    if (opType !== 'Identity' || domain !== '' || outputs.has(to)) return true;
    originals.set(to, originals.get(from) ?? from);
    return false;
  });
  const resolve = (node: NodeProto): void => {
    node.input = node.input.map((name) => originals.get(name) ?? name);
    for (const inner of subgraphs(node)) for (const each of inner.node) resolve(each);
  };
  if (originals.size > 0) for (const node of graph.node) resolve(node);
}
