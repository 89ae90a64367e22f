import { attribute } from '../onnx/graph.ts';
import type { NodeProto } from '../onnx/onnx_pb.ts';

/** Something in a network that Cutout's operators do not know. */
export class Unsupported extends RangeError {}

const intsOf = (node: NodeProto, name: string): number[] => attribute(node, name)?.ints.map(Number) ?? [];
const textOf = (node: NodeProto, name: string): string => new TextDecoder().decode(attribute(node, name)?.s);

/** The window of a MaxPool. Throws Unsupported for one that is padded or not square. */
export function windowOf(node: NodeProto): [kernel: number, stride: number, roundUp: boolean] {
  const [height = 0, width = 0] = intsOf(node, 'kernel_shape');
  const [down = 1, right = 1] = intsOf(node, 'strides');
  const plain =
    intsOf(node, 'pads').every((pad) => pad === 0) && intsOf(node, 'dilations').every((each) => each === 1);
  if (!plain || height !== width || down !== right) throw new Unsupported(`${node.name} has an odd window`);
  return [height, down, attribute(node, 'ceil_mode')?.i === 1n];
}

/** How a Resize samples its input. */
export interface Sampling {
  readonly factor: number;
  /** Enlarged at pixel centres or from the first pixel, or reduced at pixel centres. */
  readonly grid: 'centres' | 'corners' | 'reduced';
}

/**
 * The sampling of a bilinear Resize. Throws Unsupported for one whose factor is no power of two.
 * @param scales of its four dimensions
 */
export function samplingOf(node: NodeProto, scales: Float32Array): Sampling {
  const [n, c, height = 0, width = 0] = scales;
  const corners = textOf(node, 'coordinate_transformation_mode') === 'asymmetric';
  if (!corners && height >= 1) return { factor: enlargementOf(node, scales), grid: 'centres' };
  const factor = corners ? height : 1 / height;
  const coordinates = textOf(node, 'coordinate_transformation_mode');
  const plain =
    textOf(node, 'mode') === 'linear' &&
    (corners || coordinates === 'half_pixel' || coordinates === 'pytorch_half_pixel') &&
    (attribute(node, 'antialias')?.i ?? 0n) === 0n;
  if (
    !plain ||
    n !== 1 ||
    c !== 1 ||
    height !== width ||
    !Number.isInteger(Math.log2(factor)) ||
    factor < 1
  ) {
    throw new Unsupported(`${node.name} resizes by another factor than a power of two`);
  }
  return { factor, grid: corners ? 'corners' : 'reduced' };
}

/**
 * By how much a bilinear Resize at pixel centres enlarges. Throws Unsupported for any other one.
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

/** Height and width of a map, where they are known. */
export type Side = readonly [number, number] | undefined;

/** The borders that `auto_pad` means along one side of the input. Throws Unsupported where they depend on an unknown size. */
function automaticPads(
  node: NodeProto,
  mode: string,
  reach: number,
  stride: number,
  length: number | undefined,
): [number, number] {
  if (mode === 'VALID') return [0, 0];
  if (stride > 1 && length === undefined) throw new Unsupported(`${node.name} is padded for an unknown size`);
  const covered =
    length === undefined ? reach - 1 : (Math.ceil(length / stride) - 1) * stride + reach - length;
  const all = Math.max(0, covered);
  const less = Math.floor(all / 2);
  return mode === 'SAME_UPPER' ? [less, all - less] : [all - less, less];
}

/**
 * The shape of a Conv of whichever groups, `channels` those of a group. Throws Unsupported for one that Cutout's operators
 * do not compute.
 * @param dims of its weights
 */
export function groupedGeometry(
  node: NodeProto,
  dims: readonly bigint[],
  side: Side,
): ConvGeometry & { readonly groups: number } {
  const mode = textOf(node, 'auto_pad');
  const groups = Number(attribute(node, 'group')?.i ?? 1n);
  if (mode === '' || mode === 'NOTSET') return { ...plainGeometry(node, dims), groups };
  const shape = plainGeometry(node, dims);
  const along = (axis: 0 | 1) =>
    automaticPads(node, mode, shape.dilation * (shape.kernel[axis] - 1) + 1, shape.stride, side?.[axis]);
  const [[top, bottom], [left, end]] = [along(0), along(1)];
  return { ...shape, pads: [top, left, bottom, end], groups };
}

/** Height and width after a convolution. */
export function sideAfter(
  { kernel, stride, dilation, pads: [top, left, bottom, end] }: ConvGeometry,
  side: Side,
): Side {
  const along = (length: number, taps: number, pads: number) =>
    Math.floor((length + pads - dilation * (taps - 1) - 1) / stride) + 1;
  return side && [along(side[0], kernel[0], top + bottom), along(side[1], kernel[1], left + end)];
}

/**
 * The shape of a Conv. Throws Unsupported for one that Cutout's operators in 8 bits do not compute.
 * @param dims of its weights
 */
export function convGeometry(node: NodeProto, dims: readonly bigint[]): ConvGeometry {
  const automatic = textOf(node, 'auto_pad');
  const grouped = (attribute(node, 'group')?.i ?? 1n) !== 1n;
  if (grouped || (automatic !== '' && automatic !== 'NOTSET')) {
    throw new Unsupported(`${node.name} is a convolution of another shape`);
  }
  return plainGeometry(node, dims);
}

function plainGeometry(node: NodeProto, dims: readonly bigint[]): ConvGeometry {
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
