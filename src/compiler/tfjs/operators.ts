import type { GraphBuilder } from '../onnx/build.ts';
import { type Constant, settings, type TfNode } from './graph.ts';

/** Input of a node: a constant, or the name of a tensor in ONNX's layout [N,C,H,W]. */
export type Operand =
  | { readonly kind: 'constant'; readonly constant: Constant }
  | { readonly kind: 'tensor'; readonly name: string };

interface Call {
  readonly node: TfNode;
  readonly inputs: readonly Operand[];
  /** Receives the ONNX nodes and constants that the operator becomes. */
  readonly sink: GraphBuilder;
  /** Height and width of the input over those that the model was published for. */
  readonly zoom: readonly [number, number];
}

/** Converts one TensorFlow operator to ONNX; the result is the tensor `node.name`. */
type Operator = (call: Call) => void;

function tensor({ node, inputs }: Call, at = 0): string {
  const operand = inputs[at];
  if (operand?.kind !== 'tensor') throw new RangeError(`input ${at} of ${node.name} is not computed`);
  return operand.name;
}

function constant({ node, inputs }: Call, at: number): Constant {
  const operand = inputs[at];
  if (operand?.kind !== 'constant') throw new RangeError(`input ${at} of ${node.name} is not constant`);
  return operand.constant;
}

/** Transposes a constant: axis i of the result is axis order[i] of the source. */
function transposed({ shape, values }: Constant, order: readonly number[]): Constant {
  const side = (axis: number) => shape[axis] ?? 1;
  const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((product, each) => product * each, 1));
  const dims = order.map(side);
  const result = new Float32Array(values.length);
  for (let at = 0; at < result.length; at++) {
    let rest = at;
    let from = 0;
    for (let axis = order.length - 1; axis >= 0; axis--) {
      const length = dims[axis] ?? 1;
      from += (rest % length) * (strides[order[axis] ?? 0] ?? 0);
      rest = Math.floor(rest / length);
    }
    result[at] = values[from] ?? Number.NaN;
  }
  return { shape: dims, values: result };
}

const scalar = (sink: GraphBuilder, value: number) => sink.floats([], Float32Array.of(value));

/** Returns the padding of a node; TensorFlow's `SAME` puts the odd pixel below and to the right. */
function padding({ node }: Call): string {
  const given = settings(node).text('padding');
  if (given === 'SAME') return 'SAME_UPPER';
  if (given === 'VALID') return 'VALID';
  throw new RangeError(`${node.name} has the padding ${given}`);
}

/** Returns the height and width of a list [N,H,W,C]. */
function spatial({ node }: Call, key: string): readonly number[] {
  const [, height, width] = settings(node).integers(key);
  if (height === undefined || width === undefined) throw new RangeError(`${node.name} has no ${key}`);
  return [height, width];
}

/** Returns the kernel in ONNX's layout [out, in / groups, H, W], and the number of groups. */
function kernelOf(weights: Constant, depthwise: boolean): { kernel: Constant; group: number } {
  const [height = 1, width = 1, channels = 1, multiplier = 1] = weights.shape;
  if (!depthwise) return { kernel: transposed(weights, [3, 2, 0, 1]), group: 1 };
  const { values } = transposed(weights, [2, 3, 0, 1]);
  return { kernel: { shape: [channels * multiplier, 1, height, width], values }, group: channels };
}

const convolution =
  (depthwise: boolean): Operator =>
  (call) => {
    const { node, inputs, sink } = call;
    const fused = settings(node).texts('fused_ops');
    const activations = fused.filter((name) => name !== 'BiasAdd');
    const { kernel, group } = kernelOf(constant(call, 1), depthwise);
    const bias = inputs.length > 2 ? [constant(call, 2)] : [];
    if (fused.includes('BiasAdd') !== (bias.length === 1) || activations.length > 1)
      throw new RangeError(`${node.name} is fused with ${fused.join(', ')}`);
    const dilations = node.attr['dilations'] ? spatial(call, 'dilations') : [1, 1];
    // ONNX Runtime does not compute automatic padding for dilated kernels.
    if (padding(call) !== 'VALID' && dilations.some((each) => each !== 1))
      throw new RangeError(`${node.name} is dilated and padded`);
    const [activation] = activations;
    const output = activation === undefined ? node.name : `${node.name}/linear`;
    const floats = [kernel, ...bias].map(({ shape, values }) => sink.floats(shape, values));
    sink.node('Conv', [tensor(call), ...floats], output, {
      group,
      strides: spatial(call, 'strides'),
      dilations,
      kernel_shape: kernel.shape.slice(2),
      auto_pad: padding(call),
    });
    if (activation === 'Relu') sink.node('Relu', [output], node.name);
    else if (activation !== undefined)
      throw new RangeError(`${node.name} is fused with the unknown ${activation}`);
  };

/** Adds a constant operand of an image: a scalar stays one, per-channel values move to axis 1. */
function constantOperand({ node, sink }: Call, { shape, values }: Constant): string {
  if (values.length === 1) return scalar(sink, values[0] ?? Number.NaN);
  if (shape.length === 1) return sink.floats([1, values.length, 1, 1], values);
  throw new RangeError(`${node.name} has a constant of ${shape.length} dimensions`);
}

const elementwise =
  (opType: string): Operator =>
  (call) => {
    const names = call.inputs.map((operand) =>
      operand.kind === 'tensor' ? operand.name : constantOperand(call, operand.constant),
    );
    call.sink.node(opType, names, call.node.name);
  };

const plain =
  (opType: string): Operator =>
  (call) => {
    call.sink.node(opType, [tensor(call)], call.node.name);
  };

const relu6: Operator = (call) => {
  const { node, sink } = call;
  sink.node('Clip', [tensor(call), scalar(sink, 0), scalar(sink, 6)], node.name);
};

/** Axes of [N,H,W,C], counted from the front or the back, in [N,C,H,W]. */
const AXES = [0, 2, 3, 1] as const;

function axesOf(call: Call, axes: Constant): number[] {
  return [...axes.values].map((axis) => {
    const moved = AXES[axis < 0 ? axis + 4 : axis];
    if (moved === undefined) throw new RangeError(`${call.node.name} has no axis ${axis}`);
    return moved;
  });
}

const mean: Operator = (call) => {
  const { node, sink } = call;
  if (!settings(node).flag('keep_dims')) throw new RangeError(`${node.name} drops dimensions`);
  const axes = axesOf(call, constant(call, 1)).sort((a, b) => a - b);
  if (axes.join() === '2,3') sink.node('GlobalAveragePool', [tensor(call)], node.name);
  else sink.node('ReduceMean', [tensor(call)], node.name, { axes, keepdims: 1 });
};

const concatenation: Operator = (call) => {
  const { node, inputs, sink } = call;
  const last = inputs.length - 1;
  const [axis = 0] = axesOf(call, constant(call, last));
  sink.node(
    'Concat',
    inputs.slice(0, last).map((_, at) => tensor(call, at)),
    node.name,
    { axis },
  );
};

const resizing: Operator = (call) => {
  const { node, sink, zoom } = call;
  const { flag } = settings(node);
  const image = tensor(call);
  const sides = [...constant(call, 1).values].map((side, axis) => side * (zoom[axis] ?? 1));
  if (!sides.every(Number.isInteger))
    throw new RangeError(`${node.name} would have ${sides.join(' x ')} pixels`);
  const shape = sink.node('Shape', [image], `${node.name}/shape`);
  const front = sink.node(
    'Slice',
    [shape, sink.integers([0]), sink.integers([2])],
    `${node.name}/batch and channels`,
  );
  const sizes = sink.node('Concat', [front, sink.integers(sides)], `${node.name}/sizes`, {
    axis: 0,
  });
  const aligned = flag('align_corners') ? 'align_corners' : 'asymmetric';
  sink.node('Resize', [image, '', '', sizes], node.name, {
    mode: 'linear',
    coordinate_transformation_mode: flag('half_pixel_centers') ? 'half_pixel' : aligned,
  });
};

/** Supported operators, by TensorFlow's names. */
export const operators: Readonly<Record<string, Operator>> = {
  _FusedConv2D: convolution(false),
  Conv2D: convolution(false),
  FusedDepthwiseConv2dNative: convolution(true),
  DepthwiseConv2dNative: convolution(true),
  Add: elementwise('Add'),
  Mul: elementwise('Mul'),
  Relu: plain('Relu'),
  Relu6: relu6,
  Sigmoid: plain('Sigmoid'),
  Mean: mean,
  ConcatV2: concatenation,
  ResizeBilinear: resizing,
};
