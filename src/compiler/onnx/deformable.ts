import { newNode } from './build.ts';
import { integers, Matcher, type Pattern } from './match.ts';
import type { GraphProto, ModelProto, NodeProto } from './onnx_pb.ts';
import { raiseOperatorSet } from './operatorSet.ts';

/** The first operator set with DeformConv. */
const neededOperatorSet = 19n;

const node = (opType: string, ...inputs: readonly Pattern[]) => ({ opType, inputs });
const reshape = (map: Pattern, shape: Pattern = '*') => node('Reshape', map, shape);
const transpose = (map: Pattern, ...perm: readonly number[]) => ({
  ...node('Transpose', map),
  settings: { perm },
});

/**
 * What exporters write for torchvision's `deform_conv2d`, which ONNX lacked until the operator set 19 (Zhu et al., Deformable
 * ConvNets v2, equation 1): positions `p` from a constant grid and the offsets; the four pixels around each of them,
 * gathered from the padded map; their sum, weighted bilinearly and by the mask, as the input of a convolution whose
 * strides are its kernel.
 */
function columns(): Pattern {
  const p = { ...node('Add', 'grid', reshape('offset', 'offset shape')), as: 'p' };
  const floor = { ...node('Floor', p), as: 'floor' };
  // Vertical positions are 0, horizontal ones 1.
  const part = (of: Pattern, axis: 0 | 1) => node('Slice', of, [axis], [axis + 1], [3]);
  const inMap = (position: Pattern, axis: 0 | 1) => node('Clip', position, [0], `last ${axis}`);
  const first = (axis: 0 | 1) => part(node('Cast', floor), axis);
  const position = (axis: 0 | 1, second: boolean) =>
    reshape(inMap(second ? node('Add', first(axis), [1]) : first(axis), axis));
  const fraction = (axis: 0 | 1) => part(node('Sub', p, floor), axis);
  const share = (axis: 0 | 1, second: boolean) =>
    second ? fraction(axis) : node('Sub', [1], fraction(axis));
  const map = transpose(reshape(node('Pad', 'x', 'padding'), 'padded shape'), 0, 1, 3, 4, 2);
  const corner = (below: boolean, right: boolean): Pattern =>
    node(
      'Mul',
      reshape(node('Mul', share(1, right), share(0, below))),
      reshape(
        transpose(
          {
            ...node('GatherND', map, node('Concat', position(0, below), position(1, right))),
            settings: { batch_dims: [2] },
          },
          0,
          1,
          3,
          2,
        ),
      ),
    );
  const sum = node('Sum', corner(false, false), corner(true, true), corner(true, false), corner(false, true));
  const samples = node('Mul', reshape('mask'), sum);
  return reshape(transpose(reshape(samples), 0, 1, 4, 2, 5, 3));
}

/** One direction of a convolution, in pixels. */
interface Axis {
  readonly kernel: number;
  readonly stride: number;
  readonly dilation: number;
  readonly pad: number;
}

/** Positions of a grid [1, groups, taps, 2, height, width], of which all groups are equal. */
function axisOf(
  grid: readonly number[],
  [, , , , height = 0, width = 0]: readonly number[],
  axis: 0 | 1,
  [rows = 0, columns = 0]: readonly number[],
  { padding, padded }: { readonly padding: number; readonly padded: number },
): Axis | undefined {
  const size = height * width;
  const at = (tap: number, y: number, x: number) =>
    grid[(tap * 2 + axis) * size + y * width + x] ?? Number.NaN;
  const [kernel, length] = axis === 0 ? [rows, height] : [columns, width];
  const margin = at(0, 0, 0);
  // Of one position or one tap they do not matter.
  const stride = length > 1 ? at(0, axis === 0 ? 1 : 0, axis) - margin : 1;
  const dilation = kernel > 1 ? at(axis === 0 ? columns : 1, 0, 0) - margin : 1;
  for (let tap = 0; tap < rows * columns; tap += 1) {
    const step = axis === 0 ? Math.floor(tap / columns) : tap % columns;
    for (let y = 0; y < height; y += 1)
      for (let x = 0; x < width; x += 1)
        if (at(tap, y, x) !== margin + (axis === 0 ? y : x) * stride + step * dilation) return undefined;
  }
  const reach = dilation * (kernel - 1) + 1;
  const agrees = Math.floor((padded - 2 * margin - reach) / stride) + 1 === length;
  // Without a border of zeros a position beyond the map would read its edge.
  return agrees && padding >= 1 ? { kernel, stride, dilation, pad: padding - margin } : undefined;
}

/** The DeformConv that a convolution is a part of; undefined if it is none. */
function deformable(conv: NodeProto, matcher: Matcher, pattern: Pattern): NodeProto | undefined {
  const kernel = integers(conv, 'kernel_shape');
  if (conv.opType !== 'Conv' || `${kernel}` !== `${integers(conv, 'strides')}`) return undefined;
  const found = matcher.find(conv.input[0], pattern);
  if (!found || !kernel) return undefined;
  const constant = (name: string) => matcher.values(found.get(name)) ?? [];
  const grid = constant('grid');
  const dims = matcher.dims(found.get('grid')) ?? [];
  const [, groups = 0, taps, , ...size] = constant('offset shape');
  const padding = constant('padding');
  const padded = constant('padded shape').slice(3);
  const along = (axis: 0 | 1) => {
    const [length = 0] = padded.slice(axis);
    const amount = padding[2 + axis] ?? 0;
    const last = constant(`last ${axis}`)[0];
    const alike = padding[6 + axis] === amount && last === length - 1;
    return alike ? axisOf(grid, dims, axis, kernel, { padding: amount, padded: length }) : undefined;
  };
  const [vertical, horizontal] = [along(0), along(1)];
  const usual = dims.length === 6 && dims[0] === 1 && dims[1] === 1 && `${dims.slice(4)}` === `${size}`;
  if (!vertical || !horizontal || !usual || taps !== vertical.kernel * horizontal.kernel) return undefined;
  const axes = [vertical, horizontal];
  const pads = axes.map(({ pad }) => pad);
  const [x = '', offset = '', mask = ''] = ['x', 'offset', 'mask'].map((name) => found.get(name));
  return newNode('DeformConv', [x, conv.input[1] ?? '', offset, conv.input[2] ?? '', mask], conv.output, {
    kernel_shape: kernel,
    strides: axes.map(({ stride }) => stride),
    dilations: axes.map(({ dilation }) => dilation),
    pads: [...pads, ...pads],
    group: integers(conv, 'group')?.[0] ?? 1,
    offset_group: groups,
  });
}

/**
 * Makes the gathers, products and sums that exporters write for a deformable convolution one DeformConv, which needs a tenth
 * of the memory. Its sums are the same in another order. A network where any of it differs stays as it is, and so does one
 * with operators that differ in the operator set of DeformConv. @returns how many it found
 */
export function collapseDeformable(model: ModelProto, graph: GraphProto): number {
  // Every such network gathers.
  if (!graph.node.some(({ opType }) => opType === 'GatherND')) return 0;
  const matcher = new Matcher(graph);
  const pattern = columns();
  const found = graph.node.map((conv) => deformable(conv, matcher, pattern));
  const count = found.filter((each) => each !== undefined).length;
  if (count === 0 || !raiseOperatorSet(model, neededOperatorSet)) return 0;
  graph.node = graph.node.map((conv, at) => found[at] ?? conv);
  return count;
}
