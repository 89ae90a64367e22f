import { floatTensor } from './build.ts';
import {
  attribute,
  constants,
  floatValues,
  int64Values,
  intsOf,
  producersOf,
  shapeOf,
  textOf,
} from './graph.ts';
import type { GraphProto, NodeProto, TensorProto, ValueInfoProto } from './onnx_pb.ts';
import { dropUnused } from './prune.ts';

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

const numbers = (node: NodeProto, name: string): number[] | undefined => {
  const found = intsOf(node, name);
  return found.length > 0 ? found : undefined;
};

/**
 * Returns the height and width after a convolution or pooling, by the formulas of the ONNX standard; undefined for
 * automatic padding.
 */
function slid(node: NodeProto, side: Side, weights: TensorProto | undefined): Side | undefined {
  if (!['', 'NOTSET'].includes(textOf(node, 'auto_pad'))) return undefined;
  const kernel = numbers(node, 'kernel_shape') ?? weights?.dims.slice(2).map(Number);
  if (kernel?.length !== 2) return undefined;
  const strides = numbers(node, 'strides') ?? [1, 1];
  const pads = numbers(node, 'pads') ?? [0, 0, 0, 0];
  const dilations = numbers(node, 'dilations') ?? [1, 1];
  const up = attribute(node, 'ceil_mode')?.i === 1n;
  const along = (axis: 0 | 1): number => {
    const reach = (dilations[axis] ?? 1) * ((kernel[axis] ?? 1) - 1) + 1;
    const steps = (side[axis] + (pads[axis] ?? 0) + (pads[axis + 2] ?? 0) - reach) / (strides[axis] ?? 1);
    return (up ? Math.ceil(steps) : Math.floor(steps)) + 1;
  };
  return [along(0), along(1)];
}

const wholeFactors = (from: Side, to: Side): Side | undefined => {
  const factors: Side = [to[0] / from[0], to[1] / from[1]];
  return factors.every((factor) => Number.isInteger(factor) && factor >= 1) ? factors : undefined;
};

type Maps = ReadonlyMap<string, Side>;

/** Integer scale factors of every Resize; undefined if one is not enlarged by an integer. */
class Enlargements {
  readonly #known: ReadonlyMap<string, TensorProto>;
  readonly #producers: ReadonlyMap<string, NodeProto>;

  constructor(graph: GraphProto) {
    this.#known = constants(graph);
    this.#producers = producersOf(graph);
  }

  /** Integers that are constant or computed from the sides of maps; NaN for those that are not known here. */
  #integers(name: string, maps: Maps): number[] {
    const constant = this.#known.get(name);
    if (constant) return int64Values(constant)?.map(Number) ?? [Number.NaN];
    const node = this.#producers.get(name);
    const [first = '', ...rest] = node?.input ?? [];
    const of = (each: string) => this.#integers(each, maps);
    switch (node?.opType) {
      case 'Shape':
        return [Number.NaN, Number.NaN, ...(maps.get(first) ?? [Number.NaN, Number.NaN])];
      case 'Gather': {
        const from = of(first);
        return of(rest[0] ?? '').map((at) => from.at(at) ?? Number.NaN);
      }
      case 'Slice': {
        const [[start], [end]] = [of(rest[0] ?? ''), of(rest[1] ?? '')];
        return rest[3] === undefined || of(rest[3])[0] === 1 ? of(first).slice(start, end) : [Number.NaN];
      }
      case 'Cast':
      case 'Squeeze':
      case 'Unsqueeze':
        return of(first);
      case 'Concat':
        return node.input.flatMap(of);
      default:
        return [Number.NaN];
    }
  }

  of(node: NodeProto, maps: Maps): Side | undefined {
    const side = maps.get(node.input[0] ?? '');
    if (attribute(node, 'axes') || !side) return undefined;
    const [, , scales = '', sizes = ''] = node.input;
    if (sizes !== '') {
      const [height = Number.NaN, width = Number.NaN] = this.#integers(sizes, maps).slice(-2);
      return wholeFactors(side, [height, width]);
    }
    const [batch, channels, height, width] = floatValues(this.#known.get(scales)) ?? [];
    if (batch !== 1 || channels !== 1 || height === undefined || width === undefined) return undefined;
    return wholeFactors([1, 1], [height, width]);
  }
}

/**
 * Returns the height and width of every map for an input of size `input`, with the factor of each Resize, for which the maps
 * before it are known; undefined if an operator is not known to work at any size, or if maps that must agree do not.
 */
function sidesOf(
  graph: GraphProto,
  input: Side,
  factorOf: (node: NodeProto, maps: Maps) => Side | undefined,
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
    const factor = node.opType === 'Resize' ? factorOf(node, maps) : undefined;
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
  const enlargements = new Enlargements(graph);
  const factors = new Map<NodeProto, Side>();
  const maps = sidesOf(graph, input, (node, before) => {
    const factor = enlargements.of(node, before);
    if (factor) factors.set(node, factor);
    return factor;
  });
  if (!maps) return undefined;
  const parts = [...maps.values()].flatMap((side) => [input[0] / side[0], input[1] / side[1]]);
  const step = Math.max(...parts);
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
