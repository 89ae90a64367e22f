import { floatTensor, int64Tensor, newNode } from './build.ts';
import {
  attribute,
  constants,
  consumersOf,
  int64Values,
  intsOf,
  producersOf,
  sortNodes,
  subgraphs,
  textOf,
} from './graph.ts';
import type { FloatsOf } from './half.ts';
import type { GraphProto, ModelProto, NodeProto } from './onnx_pb.ts';
import { dropUnused } from './prune.ts';

/** The first operator set in which a Resize can name the axes that it resizes. */
const NAMED_AXES = 18n;

/** A map that a convolution reads beside others: it is enlarged from `from` by `resize`, if there is one. */
interface Part {
  readonly from: string;
  readonly channels: number;
  readonly resize?: {
    readonly node: NodeProto;
    readonly sizes: readonly bigint[];
    /** They read the shape of the enlarged map, but for its channels. */
    readonly shapes: readonly NodeProto[];
  };
}

/** Finds the parts of what a 1 x 1 convolution reads. */
class PartsFinder {
  readonly #constants;
  readonly #producers;
  readonly #consumers;
  readonly #outputs;

  constructor(graph: GraphProto) {
    this.#constants = constants(graph);
    this.#producers = producersOf(graph);
    this.#consumers = consumersOf(graph);
    this.#outputs = new Set(graph.output.map(({ name }) => name));
  }

  /** Returns the parts of a node's input where it is such a convolution and at least one part is enlarged for it alone. */
  of(node: NodeProto): readonly Part[] | undefined {
    const [maps = '', name = '', bias = ''] = node.input;
    const sides = this.#constants.get(name)?.dims.slice(2) ?? [];
    const plain = [...sides, ...intsOf(node, 'strides'), attribute(node, 'group')?.i ?? 1n];
    if (node.opType !== 'Conv' || node.domain !== '' || sides.length !== 2) return undefined;
    if (plain.some((each) => Number(each) !== 1) || intsOf(node, 'pads').some((pad) => pad !== 0))
      return undefined;
    const concat = this.#producers.get(maps);
    if (
      concat?.opType !== 'Concat' ||
      attribute(concat, 'axis')?.i !== 1n ||
      this.#shapesOf(maps)?.length !== 0
    )
      return undefined;
    if (bias !== '' && !this.#constants.has(bias)) return undefined;
    const parts = concat.input.flatMap((each) => this.#part(each) ?? []);
    return parts.length === concat.input.length && parts.some(({ resize }) => resize) ? parts : undefined;
  }

  /** Returns the nodes that read a tensor's shape, but for its channels, where beside them one node reads it. */
  #shapesOf(name: string): readonly NodeProto[] | undefined {
    const readers = this.#consumers.get(name) ?? [];
    const shapes = readers.filter(
      ({ opType, attribute: limits }) => opType === 'Shape' && limits.length === 0,
    );
    const side = ({ opType, input: [, index = ''] }: NodeProto) => {
      const at = opType === 'Gather' ? this.#constants.get(index) : undefined;
      return at !== undefined && int64Values(at)?.every((each) => each !== 1n && each !== -3n);
    };
    const sides = shapes.flatMap(({ output: [shape = ''] }) => this.#consumers.get(shape) ?? []);
    const once = readers.length === shapes.length + 1 && !this.#outputs.has(name);
    return once && sides.every(side) ? shapes : undefined;
  }

  #part(name: string): Part | undefined {
    const node = this.#producers.get(name);
    const shapes = node?.opType === 'Resize' ? this.#shapesOf(name) : undefined;
    const sizes = node && shapes ? this.#sizes(node) : undefined;
    const from = node && sizes ? (node.input[0] ?? '') : name;
    const maker = this.#producers.get(from);
    const dims = maker?.opType === 'Conv' ? this.#constants.get(maker.input[1] ?? '')?.dims : undefined;
    const channels = Number(dims?.[0] ?? 0);
    if (channels === 0) return undefined;
    return { from, channels, ...(node && shapes && sizes && { resize: { node, sizes, shapes } }) };
  }

  /** Returns the height and width that a linear Resize gives, where they are constant. */
  #sizes(node: NodeProto): readonly bigint[] | undefined {
    const unlike = ['axes', 'exclude_outside', 'keep_aspect_ratio_policy'].some((name) =>
      attribute(node, name),
    );
    if (
      unlike ||
      textOf(node, 'mode') !== 'linear' ||
      textOf(node, 'coordinate_transformation_mode') === 'tf_crop_and_resize'
    )
      return undefined;
    // Exporters write the number of images and channels as they find them, then what the maps become.
    const sizes = this.#producers.get(node.input[3] ?? '');
    const last = sizes?.opType === 'Concat' ? this.#constants.get(sizes.input.at(-1) ?? '') : undefined;
    const values = last && int64Values(last);
    return values?.length === 2 ? values : undefined;
  }
}

/**
 * Rewrites 1 x 1 convolutions of maps that lie side by side, some of them enlarged for it, as the last one of BiRefNet: as the
 * sum of a convolution of each map, before that is enlarged. Both are linear, and the weights of linear enlarging add up to
 * 1, so the result is the same but for the order of its sums. A network of an operator set before 18 stays as it is.
 */
export function reduceBeforeEnlarging(
  { opsetImport }: ModelProto,
  graph: GraphProto,
  floats: FloatsOf,
): void {
  const standard = opsetImport.find(({ domain }) => domain === '');
  if (!standard || standard.version < NAMED_AXES) return;
  // What nested graphs read is not followed.
  if (graph.node.some((node) => subgraphs(node).length > 0)) return;
  const [parts, known] = [new PartsFinder(graph), constants(graph)];
  const sumOf = (node: NodeProto): NodeProto[] => {
    const found = parts.of(node);
    const [, name = '', bias = ''] = node.input;
    const weights = known.get(name);
    if (!found || !weights) return [node];
    const rows = Number(weights.dims[0]);
    // Nothing is gained where the maps are not fewer behind the convolution.
    if (found.some(({ channels }) => channels <= rows)) return [node];
    const values = floats(weights);
    const all = values.length / rows;
    const [to = ''] = node.output;
    let first = 0;
    const made = found.flatMap(({ from, channels, resize }, at) => {
      const own = Float32Array.from({ length: rows * channels }, (_, i) => {
        const row = Math.floor(i / channels);
        return values[row * all + first + (i - row * channels)] ?? 0;
      });
      first += channels;
      const tensor = floatTensor(`cutout/${to}/weights${at}`, [rows, channels, 1, 1], own);
      graph.initializer.push(tensor);
      const part = `cutout/${to}/part${at}`;
      const reduced = resize ? `${part}/small` : part;
      const inputs = [from, tensor.name, ...(at === 0 && bias !== '' ? [bias] : [])];
      const conv = newNode('Conv', inputs, [reduced]);
      conv.attribute = node.attribute;
      if (!resize) return [conv];
      const sizes = int64Tensor(`${part}/sizes`, resize.sizes);
      graph.initializer.push(sizes);
      const enlarged = newNode('Resize', [reduced, '', '', sizes.name], [part], { axes: [2, 3] });
      enlarged.attribute.push(...resize.node.attribute);
      for (const shape of resize.shapes) shape.input = [part];
      return [conv, enlarged];
    });
    const sum = newNode(
      'Sum',
      found.map((_, at) => `cutout/${to}/part${at}`),
      [to],
    );
    return [...made, sum];
  };
  const made = graph.node.flatMap(sumOf);
  if (made.length === graph.node.length) return;
  graph.node = made;
  sortNodes(graph);
  dropUnused(graph);
}
