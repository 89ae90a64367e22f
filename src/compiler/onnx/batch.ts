import { int64Tensor, newNode } from './build.ts';
import { attribute, constants, int64Values, producersOf, shapeOf, subgraphs } from './graph.ts';
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

/** Gives a node another constant, without which the batch would stay fixed at 1. */
type Rewrite = () => void;

/** Decides for single nodes whether they treat images independently, and what has to be rewritten for that. */
class BatchRule {
  readonly #graph: GraphProto;
  readonly #known: ReadonlyMap<string, TensorProto>;
  readonly #producers: ReadonlyMap<string, NodeProto>;

  constructor(graph: GraphProto) {
    this.#graph = graph;
    this.#known = constants(graph);
    this.#producers = producersOf(graph);
  }

  /** Returns the rewrites that a node needs; undefined if it is not known to treat images independently. */
  rewrites(node: NodeProto, images: ReadonlySet<string>): Rewrite[] | undefined {
    const keepsBatch = (kept: boolean) => (kept ? [] : undefined);
    const axis = Number(attribute(node, 'axis')?.i ?? 0n);
    if (INDEPENDENT.has(node.opType)) return [];
    if (ELEMENTWISE.has(node.opType))
      return keepsBatch(node.input.every((name) => images.has(name) || this.#broadcasts(name)));
    switch (node.opType) {
      case 'Concat':
        // Anything else concatenated with the images has a batch of its own.
        return keepsBatch(axis > 0 && node.input.every((name) => images.has(name)));
      case 'Split':
      case 'Softmax':
        return keepsBatch(axis > 0);
      case 'Transpose':
        return keepsBatch(attribute(node, 'perm')?.ints[0] === 0n);
      case 'Reshape':
        return this.#reshape(node);
      case 'Resize':
        return this.#resize(node, node.input[3] ?? '');
      case 'Upsample':
        return this.#resize(node, '');
      default:
        return undefined;
    }
  }

  #dims(name: string): bigint[] | undefined {
    const tensor = this.#known.get(name);
    return tensor && int64Values(tensor);
  }

  #broadcasts(name: string): boolean {
    const dims = this.#known.get(name)?.dims;
    return dims !== undefined && (dims.length < 4 || dims[0] === 1n);
  }

  #reshape(node: NodeProto): Rewrite[] | undefined {
    const shape = this.#dims(node.input[1] ?? '');
    if (!shape || attribute(node, 'allowzero')?.i === 1n) return undefined;
    if (shape[0] === 0n) return [];
    if (shape[0] !== 1n) return undefined;
    const name = `${node.output[0]}/shape`;
    return [
      () => {
        this.#graph.initializer.push(int64Tensor(name, [0n, ...shape.slice(1)]));
        node.input[1] = name;
      },
    ];
  }

  #resize(node: NodeProto, sizes: string): Rewrite[] | undefined {
    if (attribute(node, 'axes')) return undefined;
    if (sizes === '') return [];
    const fixed = this.#dims(sizes);
    if (fixed) return fixed[0] === 1n ? [() => this.#freeSizes(node, fixed)] : undefined;
    // A computed size follows the batch if its first part comes from the image's own shape.
    const join = this.#producers.get(sizes);
    const first = join?.opType === 'Concat' ? (join.input[0] ?? '') : '';
    return first !== '' && !this.#known.has(first) ? [] : undefined;
  }

  /** Takes the batch in the sizes of a Resize from its input. */
  #freeSizes(node: NodeProto, fixed: readonly bigint[]): void {
    const { initializer, node: nodes } = this.#graph;
    const name = `${node.output[0]}/sizes`;
    const [rest, zero, one] = [`${name}/rest`, `${name}/zero`, `${name}/one`];
    initializer.push(int64Tensor(rest, fixed.slice(1)), int64Tensor(zero, [0n]), int64Tensor(one, [1n]));
    nodes.splice(
      nodes.indexOf(node),
      0,
      newNode('Shape', [node.input[0] ?? ''], [`${name}/shape`]),
      newNode('Slice', [`${name}/shape`, zero, one, zero], [`${name}/batch`]),
      newNode('Concat', [`${name}/batch`, rest], [name], { axis: 0 }),
    );
    node.input[3] = name;
  }
}

function freeFirst(value: ValueInfoProto): void {
  const first = shapeOf(value)?.[0];
  if (first) first.value = { case: 'dimParam', value: 'batch' };
}

/**
 * Frees the batch dimension of a network published for one image. Done only if every operator between input
 * and output is known to treat images independently; otherwise nothing changes.
 * @returns whether the batch dimension is free now
 */
export function freeBatch(graph: GraphProto): boolean {
  const [input] = graph.input;
  if (!input) return false;
  const rule = new BatchRule(graph);
  const images = new Set([input.name]);
  const rewrites: Rewrite[] = [];
  for (const node of graph.node) {
    if (!node.input.some((name) => images.has(name))) continue;
    if (node.opType === 'Shape') continue;
    if (subgraphs(node).length > 0) return false;
    const needed = rule.rewrites(node, images);
    if (!needed) return false;
    rewrites.push(...needed);
    for (const name of node.output) images.add(name);
  }
  if (!graph.output.every((value) => images.has(value.name))) return false;
  for (const rewrite of rewrites) rewrite();
  for (const value of [input, ...graph.output]) freeFirst(value);
  return true;
}
