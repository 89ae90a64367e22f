import { floatTensor } from './build.ts';
import { attribute, constants, intsOf, shapeOf, textOf } from './graph.ts';
import type { GraphProto, NodeProto, TensorProto, ValueInfoProto } from './onnx_pb.ts';
import { dropUnused } from './prune.ts';
import { inferShapes, slidSide, type Tensor } from './shapes.ts';

/** Height and width of a feature map. */
type Side = readonly [number, number];

/** Operators whose output has the height and width of their first input. */
const KEEP = new Set([
  ...['BatchNormalization', 'Relu', 'LeakyRelu', 'PRelu', 'Sigmoid', 'HardSigmoid', 'HardSwish', 'Tanh'],
  ...['Erf', 'Clip', 'Exp', 'Sqrt', 'Cast', 'Identity'],
]);
const ELEMENTWISE = new Set(['Add', 'Sub', 'Mul', 'Div']);
const POOLS = new Set(['MaxPool', 'AveragePool']);
/** Operators from which published files compute the sizes of a Resize. */
const ARITHMETIC = new Set(['Shape', 'Slice', 'Gather', 'Unsqueeze', 'Squeeze', 'Concat', 'Cast']);

const equal = (a: Side, b: Side) => a[0] === b[0] && a[1] === b[1];

/**
 * Returns the height and width after a convolution or pooling, by the formulas of the ONNX standard; undefined for
 * automatic padding.
 */
function slid(node: NodeProto, side: Side, weights: TensorProto | undefined): Side | undefined {
  const declared = intsOf(node, 'kernel_shape');
  const kernel = declared.length > 0 ? declared : weights?.dims.slice(2).map(Number);
  if (!['', 'NOTSET'].includes(textOf(node, 'auto_pad')) || kernel?.length !== 2) return undefined;
  return [slidSide(node, 0, side[0], kernel), slidSide(node, 1, side[1], kernel)];
}

const wholeFactors = (from: Side, to: Side): Side | undefined => {
  const factors: Side = [to[0] / from[0], to[1] / from[1]];
  return factors.every((factor) => Number.isInteger(factor) && factor >= 1) ? factors : undefined;
};

/** Returns by which integers a Resize enlarges; undefined for another one. */
function wholeEnlargementOf(node: NodeProto, tensors: ReadonlyMap<string, Tensor>): Side | undefined {
  const [from = '', , scales = '', sizes = ''] = node.input;
  const [before, after] = [tensors.get(from), tensors.get(node.output[0] ?? '')];
  const whole = sizes !== '' || tensors.get(scales)?.values?.every(Number.isInteger) === true;
  if (attribute(node, 'axes') || !before || !after || !whole) return undefined;
  const [batch, channels, height = Number.NaN, width = Number.NaN] = before.shape;
  const [toBatch, toChannels, toHeight = Number.NaN, toWidth = Number.NaN] = after.shape;
  if (batch !== toBatch || channels !== toChannels) return undefined;
  return wholeFactors([height, width], [toHeight, toWidth]);
}

/**
 * Returns the height and width of every map for an input of size `input`, with the factor of each Resize, for which the maps
 * before it are known; undefined if an operator is not known to work at any size, or if maps that must agree do not.
 */
function sidesOf(
  graph: GraphProto,
  input: Side,
  factorOf: (node: NodeProto) => Side | undefined,
): Map<string, Side> | undefined {
  const known = constants(graph);
  const maps = new Map<string, Side>([[graph.input[0]?.name ?? '', input]]);
  const computed = new Set<string>();
  const broadcasts = (name: string) => {
    const sides = known.get(name)?.dims.slice(-2);
    return sides?.every((side) => side === 1n) ?? false;
  };
  const after = (node: NodeProto, side: Side): Side | undefined => {
    const rest = node.input.slice(1);
    if (KEEP.has(node.opType)) return side;
    if (node.opType === 'Conv') return slid(node, side, known.get(node.input[1] ?? ''));
    if (POOLS.has(node.opType)) return slid(node, side, undefined);
    const alike = (name: string) => {
      const other = maps.get(name);
      return other !== undefined && equal(other, side);
    };
    if (ELEMENTWISE.has(node.opType))
      return rest.every((name) => alike(name) || broadcasts(name)) ? side : undefined;
    if (node.opType === 'Concat')
      return Number(attribute(node, 'axis')?.i) === 1 && rest.every(alike) ? side : undefined;
    const factor = node.opType === 'Resize' ? factorOf(node) : undefined;
    return factor && [side[0] * factor[0], side[1] * factor[1]];
  };
  for (const node of graph.node) {
    const map = node.input.find((name) => maps.has(name));
    if (map === undefined) {
      if (!node.input.some((name) => computed.has(name))) continue;
      if (!ARITHMETIC.has(node.opType)) return undefined;
      for (const name of node.output) computed.add(name);
    } else if (node.opType === 'Shape') {
      for (const name of node.output) computed.add(name);
    } else {
      // A value computed from the image's size is supported as the size of a Resize only.
      if (node.opType !== 'Resize' && node.input.some((name) => computed.has(name))) return undefined;
      const first = maps.get(node.input[0] ?? '') ?? maps.get(map);
      const side = first && after(node, first);
      if (!side) return undefined;
      for (const name of node.output) maps.set(name, side);
    }
  }
  return graph.output.every(({ name }) => maps.has(name)) ? maps : undefined;
}

function declaredSide(value: ValueInfoProto | undefined): Side | undefined {
  const [, , height, width, more] = (value && shapeOf(value)) ?? [];
  if (more || height?.value.case !== 'dimValue' || width?.value.case !== 'dimValue') return undefined;
  return [Number(height.value.value), Number(width.value.value)];
}

/**
 * Frees the input size of a network published for one size: a Resize to sides that are constant, or another map's,
 * becomes one by integer factors. Done only if every operator between input and output is known to work at any size
 * and every map keeps its exact proportion to the image; otherwise nothing changes. @returns the number that both
 * sides of the input must be a multiple of; undefined if the size stays fixed
 */
export function freeSize(graph: GraphProto): number | undefined {
  const input = declaredSide(graph.input[0]);
  if (!input) return undefined;
  const dims = (graph.input[0] && shapeOf(graph.input[0])) ?? [];
  const shape = dims.map(({ value }) => (value.case === 'dimValue' ? Number(value.value) : 1));
  const tensors = inferShapes(graph, shape);
  const factors = new Map<NodeProto, Side>();
  const maps = sidesOf(graph, input, (node) => {
    const factor = wholeEnlargementOf(node, tensors);
    if (factor) factors.set(node, factor);
    return factor;
  });
  if (!maps) return undefined;
  const parts = [...maps.values()].flatMap((side) => [input[0] / side[0], input[1] / side[1]]);
  const step = parts.reduce((most, part) => Math.max(most, part), Number.NEGATIVE_INFINITY);
  if (!parts.every((part) => Number.isInteger(part) && step % part === 0)) return undefined;
  // Checks the factors at another size and aspect ratio: an agreement by rounding at the first would not hold
  // here.
  const other: Side = [5 * step, 3 * step];
  const again = sidesOf(graph, other, (node) => factors.get(node));
  for (const [name, side] of maps) {
    const proportional: Side = [(other[0] * side[0]) / input[0], (other[1] * side[1]) / input[1]];
    const found = again?.get(name);
    if (!found || !equal(found, proportional)) return undefined;
  }

  for (const [node, [height, width]] of factors) {
    const name = `${node.output[0]}/scales`;
    graph.initializer.push(floatTensor(name, [4], Float32Array.of(1, 1, height, width)));
    node.input = [node.input[0] ?? '', node.input[1] ?? '', name];
  }
  for (const value of [graph.input[0], ...graph.output]) {
    const dims = (value && shapeOf(value)) ?? [];
    const side = maps.get(value?.name ?? '');
    const whole = side !== undefined && equal(side, input);
    for (const [at, axis] of [
      [2, 'height'],
      [3, 'width'],
    ] as const) {
      const dim = dims[at];
      if (dim) dim.value = { case: 'dimParam', value: whole ? axis : `${value?.name} ${axis}` };
    }
  }
  dropUnused(graph);
  return step;
}
