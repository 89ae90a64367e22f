import { whereSupported } from '../lowPrecision/geometry.ts';
import {
  attribute,
  constants,
  elementType,
  FLOAT,
  floatValues,
  INT32,
  INT64,
  int64Values,
  intsOf,
  textOf,
  UINT8,
} from './graph.ts';
import type { GraphProto, NodeProto, TensorProto } from './onnx_pb.ts';

/** What is known of a tensor before anything runs. */
export interface Tensor {
  readonly shape: readonly number[];
  /** TensorProto.data_type. */
  readonly type: number;
  /** Those of a small tensor that is constant or computed from shapes. */
  readonly values?: readonly number[] | undefined;
}

type Shape = readonly number[];

/** Longest tensor whose values are followed: sizes and indices; most axes of a tensor. A file cannot make more work. */
const MAX_VALUES = 256;
const MAX_RANK = 64;

const BOOL = 9;

/** Number of elements; 0 with a side of 0, however large the others are. */
export const countOf = (shape: Shape): number =>
  shape.includes(0) ? 0 : shape.reduce((count, side) => count * side, 1);

/** Something is not known: the shape that depends on it is not either. One object, because stack traces take long to make. */
const UNKNOWN = new RangeError('the shape of a tensor is not known');

function known<T>(value: T | undefined): T {
  if (value === undefined) throw UNKNOWN;
  return value;
}

/** Returns a side after a convolution or pooling, by the formulas of the ONNX standard. */
export function slidSide(node: NodeProto, axis: number, side: number, kernel: Shape): number {
  const rank = kernel.length;
  const at = (name: string, index: number, otherwise: number) => intsOf(node, name)[index] ?? otherwise;
  // Cutout's operators have one stride and one dilation.
  const one = (name: string) => Number(attribute(node, name)?.i ?? 1);
  const stride = at('strides', axis, one('stride'));
  if (textOf(node, 'auto_pad').startsWith('SAME')) return Math.ceil(side / stride);
  const reach = at('dilations', axis, one('dilation')) * ((kernel[axis] ?? 1) - 1) + 1;
  const steps = (side + at('pads', axis, 0) + at('pads', axis + rank, 0) - reach) / stride;
  return (attribute(node, 'ceil_mode')?.i === 1n ? Math.ceil(steps) : Math.floor(steps)) + 1;
}

/** A node with what is known of its inputs; reading what is not known throws UNKNOWN. */
class Known {
  readonly node: NodeProto;
  readonly #tensors: ReadonlyMap<string, Tensor>;

  constructor(node: NodeProto, tensors: ReadonlyMap<string, Tensor>) {
    this.node = node;
    this.#tensors = tensors;
  }

  has(input: number): boolean {
    return (this.node.input[input] ?? '') !== '';
  }

  tensor(input: number): Tensor {
    return known(this.#tensors.get(this.node.input[input] ?? ''));
  }

  shape(input = 0): Shape {
    return this.tensor(input).shape;
  }

  values(input: number): readonly number[] {
    return known(this.tensor(input).values);
  }

  /** The values of an input or, in older operator sets, of an attribute; undefined without. */
  list(input: number, name: string): readonly number[] | undefined {
    const list = this.has(input) ? this.values(input) : attribute(this.node, name) && intsOf(this.node, name);
    // Two for each axis: the borders of a Pad.
    if (list && list.length > 2 * MAX_RANK) throw UNKNOWN;
    return list;
  }

  int(name: string, otherwise: number): number {
    return Number(attribute(this.node, name)?.i ?? otherwise);
  }

  /** The attribute `axis` of a tensor of `rank` axes. */
  axis(rank: number, otherwise = 0): number {
    return (this.int('axis', otherwise) + rank) % rank;
  }
}

type Rule = (of: Known) => Shape;
/** The same for a node with several results. */
type Rules = (of: Known) => readonly Shape[];

function broadcast(a: Shape, b: Shape): Shape {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, at) => {
    const [x = 1, y = 1] = [a[a.length - rank + at], b[b.length - rank + at]];
    return x === 1 ? y : x;
  });
}

const same: Rule = (of) => of.shape();
const together: Rule = (of) => of.node.input.map((_, at) => of.shape(at)).reduce(broadcast, []);

const slides =
  (kernelOf: (of: Known) => Shape, channelsOf: (of: Known) => number): Rule =>
  (of) => {
    const [batch = 1, , ...sides] = of.shape();
    const kernel = kernelOf(of);
    return [batch, channelsOf(of), ...sides.map((side, axis) => slidSide(of.node, axis, side, kernel))];
  };
const convolves = slides(
  (of) => of.shape(1).slice(2),
  (of) => of.shape(1)[0] ?? 0,
);
const pools = slides(
  (of) => intsOf(of.node, 'kernel_shape'),
  (of) => of.shape()[1] ?? 0,
);
/** A convolution by Cutout's operators. */
const ownConvolves = slides(
  (of) => intsOf(of.node, 'kernel'),
  (of) => of.int('outputs', 0),
);

const resizes: Rule = (of) => {
  if (attribute(of.node, 'keep_aspect_ratio_policy')) throw UNKNOWN;
  const shape = of.shape();
  const axes = of.list(9, 'axes') ?? shape.map((_, at) => at);
  const sizes = of.has(3) ? of.values(3) : undefined;
  const scales = sizes ? [] : of.values(of.node.input.length > 2 ? 2 : 1);
  return axes.reduce<Shape>((to, axis, at) => {
    const side = to.at(axis) ?? 0;
    return to.with(axis, sizes?.[at] ?? Math.floor(side * (scales[at] ?? 1)));
  }, shape);
};

/** Where a slice starts on each axis, its steps and its shape. */
function slicesOf(of: Known): { starts: number[]; steps: number[]; shape: number[] } {
  const shape = [...of.shape()];
  const starts = shape.map(() => 0);
  const steps = shape.map(() => 1);
  const from = known(of.list(1, 'starts'));
  const ends = known(of.list(2, 'ends'));
  const axes = of.list(3, 'axes') ?? from.map((_, at) => at);
  for (const [at, given] of axes.entries()) {
    const axis = given < 0 ? given + shape.length : given;
    const step = (of.has(4) ? of.values(4)[at] : undefined) ?? 1;
    const side = known(shape[axis]);
    const [least, most] = step < 0 ? [-1, side - 1] : [0, side];
    const within = (to = 0) => Math.min(Math.max(to < 0 ? to + side : to, least), most);
    starts[axis] = within(from[at]);
    steps[axis] = step;
    shape[axis] = Math.max(0, Math.ceil((within(ends[at]) - within(from[at])) / step));
  }
  return { starts, steps, shape };
}

/** Distances of neighbours on each axis. */
const stridesOf = (shape: Shape): number[] => shape.map((_, axis) => countOf(shape.slice(axis + 1)));

/** Places of the elements of a result, in order, in a tensor with these distances on its axes. */
const placesOf = (shape: Shape, strides: Shape): number[] =>
  shape.reduce<number[]>(
    (places, side, axis) =>
      places.flatMap((place) => Array.from({ length: side }, (_, at) => place + at * (strides[axis] ?? 0))),
    [0],
  );

const reduces: Rule = (of) => {
  const shape = of.shape();
  const given = of.list(1, 'axes') ?? shape.map((_, at) => at);
  const axes = given.map((axis) => (axis + shape.length) % shape.length);
  const kept = of.int('keepdims', 1) === 1;
  return shape.flatMap((side, at) => (axes.includes(at) ? (kept ? [1] : []) : [side]));
};

const multiplies: Rule = (of) => {
  const [a, b] = [of.shape(0), of.shape(1)];
  const outer = broadcast(a.slice(0, -2), b.slice(0, -2));
  return [...outer, ...a.slice(-2, -1), ...b.slice(-1)];
};

const RULES: Readonly<Record<string, Rule>> = {
  Conv: convolves,
  ConvInteger: convolves,
  DeformConv: convolves,
  Bf16Conv: ownConvolves,
  Int8Conv: ownConvolves,
  Bf16DeformConv: ownConvolves,
  Int8DeformConv: ownConvolves,
  MaxPool: pools,
  AveragePool: pools,
  GlobalAveragePool: (of) => of.shape().map((side, at) => (at < 2 ? side : 1)),
  Resize: resizes,
  MatMul: multiplies,
  MatMulInteger: multiplies,
  Gemm: (of) => {
    const [a, b] = [of.shape(0), of.shape(1)];
    return [known(a[of.int('transA', 0)]), known(b[1 - of.int('transB', 0)])];
  },
  Concat: (of) => {
    const shapes = of.node.input.map((_, at) => of.shape(at));
    const first = known(shapes[0]);
    const axis = of.axis(first.length);
    const sum = shapes.reduce((total, shape) => total + (shape[axis] ?? 0), 0);
    return first.with(axis, sum);
  },
  Slice: (of) => slicesOf(of).shape,
  Pad: (of) => {
    if (of.has(3)) throw UNKNOWN;
    const pads = known(of.list(1, 'pads'));
    const shape = of.shape();
    return shape.map((side, at) => side + (pads[at] ?? 0) + (pads[at + shape.length] ?? 0));
  },
  Transpose: (of) => {
    const order = intsOf(of.node, 'perm');
    const shape = of.shape();
    return order.length === 0 ? shape.toReversed() : order.map((axis) => known(shape[axis]));
  },
  Reshape: (of) => {
    const [from, to] = [of.shape(), of.values(1)];
    const sides = to.map((side, at) => (side === 0 ? known(from[at]) : side));
    const rest = countOf(from) / -countOf(sides);
    return sides.map((side) => (side === -1 ? rest : side));
  },
  Squeeze: (of) => {
    const shape = of.shape();
    const axes = of.list(1, 'axes')?.map((axis) => (axis + shape.length) % shape.length);
    return shape.filter((side, at) => (axes ? !axes.includes(at) : side !== 1));
  },
  Unsqueeze: (of) => {
    const axes = known(of.list(1, 'axes'));
    const rank = of.shape().length + axes.length;
    const shape = [...of.shape()];
    for (const axis of axes.map((each) => (each + rank) % rank).sort((a, b) => a - b))
      shape.splice(axis, 0, 1);
    return shape;
  },
  Gather: (of) => {
    const shape = of.shape();
    const axis = of.axis(shape.length);
    return [...shape.slice(0, axis), ...of.shape(1), ...shape.slice(axis + 1)];
  },
  GatherND: (of) => {
    const indices = of.shape(1);
    const depth = of.int('batch_dims', 0) + known(indices.at(-1));
    return [...indices.slice(0, -1), ...of.shape().slice(depth)];
  },
  Expand: (of) => broadcast(of.shape(), of.values(1)),
  Tile: (of) => of.shape().map((side, at) => side * (of.values(1)[at] ?? 1)),
  ConstantOfShape: (of) => of.values(0),
  Range: (of) => {
    const [[start], [limit], [delta]] = [of.values(0), of.values(1), of.values(2)];
    return [Math.max(0, Math.ceil((known(limit) - known(start)) / known(delta)))];
  },
  Shape: (of) => [of.shape().length],
  ReduceMean: reduces,
  ReduceSum: reduces,
};

const products: Rules = (of) =>
  intsOf(of.node, 'columns').map((columns) => [...of.shape().slice(0, -1), columns]);
const MANY: Readonly<Record<string, Rules>> = {
  DynamicQuantizeLinear: (of) => [of.shape(), [], []],
  Bf16Product: products,
  Int8Product: products,
  Split: (of) => {
    const shape = of.shape();
    const axis = of.axis(shape.length);
    const parts = of.node.output.length;
    const sides = of.list(1, 'split') ?? Array.from({ length: parts }, () => known(shape[axis]) / parts);
    return sides.map((side) => shape.with(axis, side));
  },
};

/** Operators whose result may take the memory of an input of the same length that nothing else reads. */
const SAME =
  'BatchNormalization InstanceNormalization LayerNormalization Relu LeakyRelu Sigmoid HardSigmoid HardSwish Tanh Elu Gelu Erf Clip Exp Log Sqrt Neg Abs Not Ceil Floor Round Cast Identity Softmax QuantizeLinear DequantizeLinear Dropout Reciprocal ScatterND Trilu Softplus';
const TOGETHER = 'Add Sub Mul Div Mod Pow Min Max Sum Equal Less Greater And Or Where PRelu';
const RULE_OF: ReadonlyMap<string, Rule> = new Map([
  ...SAME.split(' ').map((name) => [name, same] as const),
  ...TOGETHER.split(' ').map((name) => [name, together] as const),
  ...Object.entries(RULES),
]);
const IN_PLACE: ReadonlySet<string> = new Set(`${SAME} ${TOGETHER} Reshape Squeeze Unsqueeze`.split(' '));
export const worksInPlace = ({ opType }: NodeProto): boolean => IN_PLACE.has(opType);

type Calculation = (numbers: readonly number[], whole: boolean) => number;
const CALCULATIONS: Readonly<Record<string, Calculation>> = {
  Add: ([a = 0, b = 0]) => a + b,
  Sub: ([a = 0, b = 0]) => a - b,
  Mul: ([a = 0, b = 0]) => a * b,
  Div: ([a = 0, b = 1], whole) => (whole ? Math.trunc(a / b) : a / b),
  Mod: ([a = 0, b = 1]) => ((a % b) + b) % b,
  Min: (numbers) => Math.min(...numbers),
  Max: (numbers) => Math.max(...numbers),
  Equal: ([a, b]) => (a === b ? 1 : 0),
  Where: ([condition, a = 0, b = 0]) => (condition ? a : b),
  Not: ([a]) => (a ? 0 : 1),
  Ceil: ([a = 0]) => Math.ceil(a),
  Floor: ([a = 0]) => Math.floor(a),
  Cast: ([a = 0], whole) => (whole ? Math.trunc(a) : a),
};
/** Operators that leave the values of their first input as they are. */
const VALUES_KEPT = new Set(['Identity', 'Squeeze', 'Unsqueeze', 'Reshape']);

/** Returns the values of a small result. Throws UNKNOWN. */
function valuesOf(of: Known, { shape, type }: Tensor): readonly number[] | undefined {
  const { node } = of;
  const count = countOf(shape);
  const calculate = CALCULATIONS[node.opType];
  if (calculate) {
    const inputs = node.input.map((_, at) => of.values(at));
    // Sizes are lists, or lists with a number.
    if (inputs.some(({ length }) => length !== 1 && length !== count)) return undefined;
    return Array.from({ length: count }, (_, at) =>
      calculate(
        inputs.map((values) => known(values[values.length === 1 ? 0 : at])),
        type !== FLOAT,
      ),
    );
  }
  if (VALUES_KEPT.has(node.opType)) return of.values(0);
  switch (node.opType) {
    case 'Shape':
      return of.shape();
    case 'Concat':
      return shape.length === 1 ? node.input.flatMap((_, at) => of.values(at)) : undefined;
    case 'Gather':
      return of.shape().length === 1 ? of.values(1).map((at) => known(of.values(0).at(at))) : undefined;
    case 'Slice': {
      const { starts, steps } = slicesOf(of);
      const strides = stridesOf(of.shape());
      const first = starts.reduce((sum, start, axis) => sum + start * (strides[axis] ?? 0), 0);
      const by = strides.map((stride, axis) => stride * (steps[axis] ?? 1));
      return placesOf(shape, by).map((place) => known(of.values(0)[first + place]));
    }
    case 'Transpose': {
      const strides = stridesOf(of.shape());
      const by = intsOf(node, 'perm').map((axis) => strides[axis] ?? 0);
      return placesOf(shape, by).map((place) => known(of.values(0)[place]));
    }
    case 'Range': {
      const [[start = 0], [delta = 0]] = [of.values(0), of.values(2)];
      return Array.from({ length: count }, (_, at) => start + at * delta);
    }
    case 'ConstantOfShape': {
      const value = attribute(node, 'value')?.t;
      return new Array<number>(count).fill(value ? known(constantValues(value)?.[0]) : 0);
    }
    case 'Expand':
      return of.values(0).length === 1 ? new Array<number>(count).fill(known(of.values(0)[0])) : undefined;
    default:
      return undefined;
  }
}

/** Whether a tensor can have this shape. */
const isShape = (shape: Shape): boolean =>
  shape.length <= MAX_RANK && shape.every((side) => Number.isInteger(side) && side >= 0);

/** Values of a constant; undefined for a type that sizes do not have, and for floats whose bytes are not widened yet. */
function constantValues(tensor: TensorProto): readonly number[] | undefined {
  const integers = int64Values(tensor)?.map(Number);
  if (integers) return integers;
  const raw = tensor.rawData.length;
  if (raw > 0 && raw !== 4 * countOf(tensor.dims.map(Number))) return undefined;
  const floats = floatValues(tensor);
  return floats && [...floats];
}

function constantOf(tensor: TensorProto): Tensor {
  const shape = tensor.dims.map(Number);
  const values = countOf(shape) <= MAX_VALUES ? constantValues(tensor) : undefined;
  return { shape, type: tensor.dataType, values: values?.length === countOf(shape) ? values : undefined };
}

/** Returns the element type of a node's results: that of its first input, or of its second for the one that chooses. */
function typeOf(of: Known): number {
  const { node } = of;
  const { opType } = node;
  if (opType === 'Cast') return of.int('to', FLOAT);
  if (opType === 'Shape') return INT64;
  if (opType === 'DynamicQuantizeLinear') return UINT8;
  if (opType.endsWith('Integer')) return INT32;
  if (opType === 'Equal' || opType === 'Less' || opType === 'Greater') return BOOL;
  if (opType === 'ConstantOfShape') return attribute(node, 'value')?.t?.dataType ?? FLOAT;
  if (opType === 'DequantizeLinear') return FLOAT;
  if (opType === 'QuantizeLinear') return of.has(2) ? of.tensor(2).type : UINT8;
  return of.tensor(opType === 'Where' ? 1 : 0).type;
}

/**
 * Returns what is known of every tensor of the outermost graph for a first input of this shape, without computing
 * any map: the results of operators that are not known here, and what depends on them, are missing.
 */
export function inferShapes(graph: GraphProto, input: Shape): Map<string, Tensor> {
  const tensors = new Map<string, Tensor>();
  for (const [name, tensor] of constants(graph))
    if (isShape(tensor.dims.map(Number))) tensors.set(name, constantOf(tensor));
  const [image] = graph.input;
  if (image) tensors.set(image.name, { shape: input, type: elementType(image) ?? FLOAT });
  for (const node of graph.node) {
    const of = new Known(node, tensors);
    const shapes = whereSupported(() => MANY[node.opType]?.(of) ?? [known(RULE_OF.get(node.opType))(of)]);
    if (!shapes) continue;
    const type = whereSupported(() => typeOf(of)) ?? FLOAT;
    for (const [at, name] of node.output.entries()) {
      const shape = shapes[at];
      if (name === '' || !shape || !isShape(shape)) continue;
      const tensor = { shape, type };
      const values = countOf(shape) <= MAX_VALUES ? whereSupported(() => valuesOf(of, tensor)) : undefined;
      tensors.set(name, { ...tensor, values });
    }
  }
  return tensors;
}
