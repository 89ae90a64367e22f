import { buildNode, int64Tensor } from './build.ts';
import { allNodes, attribute } from './graph.ts';
import type { GraphProto, ModelProto, NodeProto } from './onnx_pb.ts';

const words = (text: string): readonly string[] => text.split(' ');

/** Operators by the operator set from which on they mean the same, up to 19. */
const same: ReadonlyMap<string, bigint> = new Map([
  ...words('Add Concat Constant Conv MaxPool Relu Resize Sigmoid').map((name) => [name, 11n] as const),
  ...words(
    'AveragePool BatchNormalization Cast Ceil Clip ConstantOfShape Div Equal Erf Exp Expand Flatten Floor Gather GatherElements ' +
      'GatherND Gemm GlobalAveragePool Identity InstanceNormalization LayerNormalization MatMul Max Min Mod Mul Neg Not Pad ' +
      'Pow Range Reciprocal Reshape ScatterND Shape Slice Softmax Sqrt Squeeze Sub Sum Tanh Tile Transpose Unsqueeze Where',
  ).map((name) => [name, 13n] as const),
]);

/** Writes axes, which were an attribute, as an input. */
function axesAsInput(node: NodeProto, graph: GraphProto): void {
  const axes = attribute(node, 'axes');
  if (!axes) return;
  const tensor = int64Tensor(`${node.output[0]}/axes`, axes.ints);
  graph.initializer.push(tensor);
  node.attribute = node.attribute.filter((each) => each !== axes);
  node.input = [node.input[0] ?? '', tensor.name];
}

/** Writes the number of parts, which was that of the outputs. */
function partsAsAttribute(node: NodeProto): void {
  if ((node.input[1] ?? '') !== '') return;
  node.input = node.input.slice(0, 1);
  node.attribute.push(...buildNode('Split', [], '', { num_outputs: node.output.length }).attribute);
}

/** Operators that are written in another way from the operator set 18 on, and how they are, from 13 on. */
const rewritten: ReadonlyMap<string, (node: NodeProto, graph: GraphProto) => void> = new Map([
  ...words('ReduceMax ReduceMean ReduceMin').map((name) => [name, axesAsInput] as const),
  ['Split', partsAsAttribute],
]);

/**
 * Raises a network to an operator set, at most 19, if all of its operators mean the same there or can be written so. Returns
 * false, and changes nothing, where that is not known of one. Throws a RangeError for a network that names no operator set.
 */
export function raiseOperatorSet({ graph, opsetImport }: ModelProto, needed: bigint): boolean {
  const standard = opsetImport.find(({ domain }) => domain === '');
  if (!standard || !graph) throw new RangeError('it names no operator set');
  const from = standard.version;
  if (from >= needed) return true;
  const rewrites = new Map(
    graph.node.flatMap((node) => {
      const rewrite = from >= 13n && from < 18n && needed >= 18n ? rewritten.get(node.opType) : undefined;
      return rewrite ? [[node, rewrite] as const] : [];
    }),
  );
  const isKnown = (node: NodeProto) =>
    node.domain === '' && (rewrites.has(node) || from >= (same.get(node.opType) ?? needed));
  if (![...allNodes(graph)].every(isKnown)) return false;
  for (const [node, rewrite] of rewrites) rewrite(node, graph);
  standard.version = needed;
  return true;
}
