import { attribute, intsOf, textOf } from '../onnx/graph.ts';
import type { NodeProto } from '../onnx/onnx_pb.ts';

/** Something in a network that Cutout's operators do not know. */
export class Unsupported extends RangeError {}

/** Returns what is made; undefined where that throws a RangeError, because something is not supported. */
export function whereSupported<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Returns the window of a MaxPool. Throws Unsupported for one that is padded or not square. */
export function windowOf(node: NodeProto): [kernel: number, stride: number, roundUp: boolean] {
  const [height = 0, width = 0] = intsOf(node, 'kernel_shape');
  const [down = 1, right = 1] = intsOf(node, 'strides');
  const plain =
    intsOf(node, 'pads').every((pad) => pad === 0) && intsOf(node, 'dilations').every((each) => each === 1);
  if (!plain || height !== width || down !== right) throw new Unsupported(`${node.name} has an odd window`);
  return [height, down, attribute(node, 'ceil_mode')?.i === 1n];
}

/**
 * Returns by how much a bilinear Resize at pixel centres enlarges. Throws Unsupported for any other one.
 * @param scales its third input
 */
export function enlargementOf(node: NodeProto, [n, c, height = 0, width = 0]: Float32Array): number {
  const coordinates = textOf(node, 'coordinate_transformation_mode');
  const plain =
    textOf(node, 'mode') === 'linear' &&
    (coordinates === 'half_pixel' || coordinates === 'pytorch_half_pixel');
  const power = Number.isInteger(Math.log2(height)) && height >= 1;
  if (!plain || n !== 1 || c !== 1 || height !== width || !power) {
    throw new Unsupported(`${node.name} is no enlargement by a power of two`);
  }
  return height;
}

export interface ConvGeometry {
  readonly outputs: number;
  readonly channels: number;
  /** Height and width. */
  readonly kernel: readonly [number, number];
  readonly stride: number;
  readonly dilation: number;
  /** Top, left, bottom, right. */
  readonly pads: readonly [number, number, number, number];
}

/**
 * Returns the shape of a Conv. Throws Unsupported for one that Cutout's operators do not compute.
 * @param dims of its weights
 */
export function convGeometry(node: NodeProto, dims: readonly bigint[]): ConvGeometry {
  const automatic = textOf(node, 'auto_pad');
  const grouped = (attribute(node, 'group')?.i ?? 1n) !== 1n;
  if (grouped || (automatic !== '' && automatic !== 'NOTSET')) {
    throw new Unsupported(`${node.name} is a convolution of another shape`);
  }
  const [outputs = 0, channels = 0, height = 0, width = 0] = dims.map(Number);
  const [down = 1, right = 1] = intsOf(node, 'strides');
  const [dilation = 1, dilationX = 1] = intsOf(node, 'dilations');
  const [top = 0, left = 0, bottom = 0, end = 0] = intsOf(node, 'pads');
  if (down !== right || down > 4 || dilation !== dilationX || dims.length !== 4) {
    throw new Unsupported(`${node.name} is a convolution of another shape`);
  }
  const pads: [number, number, number, number] = [top, left, bottom, end];
  return { outputs, channels, kernel: [height, width], stride: down, dilation, pads };
}
