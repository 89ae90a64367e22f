import { attribute, constants, int64Tensor, int64Values, newNode, subgraphs } from './graph.ts';
import type { GraphProto, NodeProto, TensorProto, ValueInfoProto } from './onnx_pb.ts';

/** Operators that treat every image of a batch independently, whatever their attributes. */
const INDEPENDENT = new Set([
  ...['Conv', 'ConvTranspose', 'BatchNormalization', 'InstanceNormalization'],
  ...['MaxPool', 'AveragePool', 'GlobalAveragePool', 'GlobalMaxPool'],
  ...['Relu', 'LeakyRelu', 'Sigmoid', 'HardSigmoid', 'HardSwish', 'Tanh', 'Erf', 'Clip', 'Exp', 'Sqrt'],
  ...['Cast', 'Identity', 'Pad', 'DepthToSpace', 'SpaceToDepth'],
]);

/** Elementwise operators of two values; a constant operand is broadcast over the batch. */
const ELEMENTWISE = new Set(['Add', 'Sub', 'Mul', 'Div', 'PRelu', 'Pow']);

type Rewrite = () => void;

/**
 * The constants of one node, shapes given to Reshape and Resize, that fix the batch at 1 and must be
 * rewritten; undefined if the node is not known to treat images independently.
 */
function rewritesFor(
  node: NodeProto,
  graph: GraphProto,
  images: ReadonlySet<string>,
  known: ReadonlyMap<string, TensorProto>,
  producers: ReadonlyMap<string, NodeProto>,
): Rewrite[] | undefined {
  const [data = '', second = ''] = node.input;
  const axis = Number(attribute(node, 'axis')?.i ?? 0n);
  const constantDims = (name: string) => {
    const tensor = known.get(name);
    return tensor && int64Values(tensor);
  };
  const broadcasts = (name: string) => {
    const dims = known.get(name)?.dims;
    return dims !== undefined && (dims.length < 4 || dims[0] === 1n);
  };

  if (INDEPENDENT.has(node.opType)) return [];
  if (ELEMENTWISE.has(node.opType)) {
    return node.input.every((name) => images.has(name) || broadcasts(name)) ? [] : undefined;
  }
  if (node.opType === 'Concat') {
    // Anything else concatenated with the images has a batch of its own.
    return axis > 0 && node.input.every((name) => images.has(name)) ? [] : undefined;
  }
  if (node.opType === 'Split' || node.opType === 'Softmax') return axis > 0 ? [] : undefined;
  if (node.opType === 'Transpose') return attribute(node, 'perm')?.ints[0] === 0n ? [] : undefined;
  if (node.opType === 'Reshape') {
    const shape = constantDims(second);
    if (!shape || attribute(node, 'allowzero')?.i === 1n) return undefined;
    if (shape[0] === 0n) return [];
    if (shape[0] !== 1n) return undefined;
    return [
      () => {
        const name = `${node.output[0]}/shape`;
        graph.initializer.push(int64Tensor(name, [0n, ...shape.slice(1)]));
        node.input[1] = name;
      },
    ];
  }
  if (node.opType === 'Resize' || node.opType === 'Upsample') {
    const sizes = node.opType === 'Resize' ? (node.input[3] ?? '') : '';
    if (attribute(node, 'axes')) return undefined;
    if (sizes === '') return [];
    const fixed = constantDims(sizes);
    if (!fixed) {
      // A computed size follows the batch if its first part comes from the image's own shape.
      const join = producers.get(sizes);
      const first = join?.opType === 'Concat' ? (join.input[0] ?? '') : '';
      return first !== '' && !known.has(first) ? [] : undefined;
    }
    if (fixed[0] !== 1n) return undefined;
    return [
      () => {
        const name = `${node.output[0]}/sizes`;
        graph.initializer.push(
          int64Tensor(`${name}/rest`, fixed.slice(1)),
          int64Tensor(`${name}/zero`, [0n]),
          int64Tensor(`${name}/one`, [1n]),
        );
        const at = graph.node.indexOf(node);
        graph.node.splice(
          at,
          0,
          newNode('Shape', [data], [`${name}/shape`]),
          newNode(
            'Slice',
            [`${name}/shape`, `${name}/zero`, `${name}/one`, `${name}/zero`],
            [`${name}/batch`],
          ),
          newNode('Concat', [`${name}/batch`, `${name}/rest`], [name], { axis: 0 }),
        );
        node.input[3] = name;
      },
    ];
  }
  return undefined;
}

function freeFirst(value: ValueInfoProto): void {
  const shape = value.type?.value.case === 'tensorType' ? value.type.value.value.shape : undefined;
  const first = shape?.dim[0];
  if (first) first.value = { case: 'dimParam', value: 'batch' };
}

/**
 * Frees the batch dimension of a network published for one image. Done only if every operator between input
 * and output is known to treat images independently; otherwise nothing changes. @returns whether the batch
 * dimension is free now
 */
export function freeBatch(graph: GraphProto): boolean {
  const [input] = graph.input;
  if (!input) return false;
  const known = constants(graph);
  const producers = new Map(graph.node.flatMap((node) => node.output.map((name) => [name, node] as const)));
  const images = new Set([input.name]);
  const rewrites: Rewrite[] = [];
  for (const node of graph.node) {
    if (!node.input.some((name) => images.has(name))) continue;
    if (node.opType === 'Shape') continue;
    if (subgraphs(node).length > 0) return false;
    const needed = rewritesFor(node, graph, images, known, producers);
    if (!needed) return false;
    rewrites.push(...needed);
    for (const name of node.output) images.add(name);
  }
  if (!graph.output.every((value) => images.has(value.name))) return false;
  for (const rewrite of rewrites) rewrite();
  for (const value of [input, ...graph.output]) freeFirst(value);
  return true;
}
