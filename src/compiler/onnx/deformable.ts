import { newNode } from './build.ts';
import { attribute, intsOf, textOf } from './graph.ts';
import { Matcher, type Pattern } from './match.ts';
import type { GraphProto, ModelProto, NodeProto } from './onnx_pb.ts';
import { raiseOperatorSet } from './operatorSet.ts';

/** The first operator set with DeformConv. */
const neededOperatorSet = 19n;

/** Whether a node is a convolution that reads where computed offsets say. */
export const isDeformable = ({ opType, domain }: NodeProto): boolean =>
  opType === 'DeformConv' && domain === '';

const node = (opType: string, ...inputs: readonly Pattern[]) => ({ opType, inputs });
const reshape = (map: Pattern, shape: Pattern) => node('Reshape', map, shape);
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
    reshape(inMap(second ? node('Add', first(axis), [1]) : first(axis), axis), 'index shape');
  const fraction = (axis: 0 | 1) => part(node('Sub', p, floor), axis);
  const share = (axis: 0 | 1, second: boolean) =>
    second ? fraction(axis) : node('Sub', [1], fraction(axis));
  const map = transpose(
    reshape({ ...node('Pad', 'x', 'padding'), as: 'frame' }, 'padded shape'),
    0,
    1,
    3,
    4,
    2,
  );
  const corner = (below: boolean, right: boolean): Pattern =>
    node(
      'Mul',
      reshape(node('Mul', share(1, right), share(0, below)), 'weight shape'),
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
        'sample shape',
      ),
    );
  const sum = node('Sum', corner(false, false), corner(true, true), corner(true, false), corner(false, true));
  const samples = node('Mul', reshape('mask', 'weight shape'), sum);
  return reshape(transpose(reshape(samples, 'taps shape'), 0, 1, 4, 2, 5, 3), 'flat shape');
}

/** One direction of a convolution, in pixels. */
interface Axis {
  readonly kernel: number;
  readonly stride: number;
  readonly dilation: number;
  readonly pad: number;
}

/** Reads the direction off a grid [1, 1, taps, 2, height, width]; undefined if any of its positions is another. */
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
  // They do not matter where there is one position, or one tap.
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

/** Whether the convolution over the samples has no border and no dilation. */
const isPlain = (conv: NodeProto): boolean =>
  intsOf(conv, 'pads').every((pad) => pad === 0) &&
  intsOf(conv, 'dilations').every((dilation) => dilation === 1) &&
  ['', 'NOTSET'].includes(textOf(conv, 'auto_pad'));

/** Whether a node adds a border of zeros. */
const addsZeros = (pad: NodeProto | undefined, matcher: Matcher): boolean =>
  pad !== undefined &&
  ['', 'constant'].includes(textOf(pad, 'mode')) &&
  (pad.input[2] === undefined || pad.input[2] === '' || `${matcher.values(pad.input[2])}` === '0');

/** The DeformConv that a convolution is a part of; undefined if it is none. */
function deformable(conv: NodeProto, matcher: Matcher, pattern: Pattern): NodeProto | undefined {
  const kernel = intsOf(conv, 'kernel_shape');
  if (conv.opType !== 'Conv' || `${kernel}` !== `${intsOf(conv, 'strides')}`) return undefined;
  const found = matcher.find(conv.input[0], pattern);
  if (!found || !isPlain(conv) || !addsZeros(matcher.producer(found.get('frame')), matcher)) return undefined;
  const constant = (name: string) => matcher.values(found.get(name)) ?? [];
  const dims = matcher.dims(found.get('grid')) ?? [];
  const [batch = 0, groups = 0, channels = 0, ...padded] = constant('padded shape');
  const padding = constant('padding');
  const [rows = 0, columns = 0] = kernel;
  const [height = 0, width = 0] = dims.slice(4);
  const taps = rows * columns;
  const shapes: Readonly<Record<string, readonly number[]>> = {
    'offset shape': [batch, groups, taps, 2, height, width],
    'index shape': [batch, groups, taps * height * width, 1],
    'weight shape': [batch, groups, 1, taps, height, width],
    'sample shape': [batch, groups, channels, taps, height, width],
    'taps shape': [batch, groups * channels, rows, columns, height, width],
    'flat shape': [batch, groups * channels, height * rows, width * columns],
  };
  const isUsual = Object.entries(shapes).every(([name, shape]) => `${constant(name)}` === `${shape}`);
  if (!isUsual || `${dims.slice(0, 4)}` !== `${[1, 1, taps, 2]}`) return undefined;
  const along = (axis: 0 | 1) => {
    const [length = 0] = padded.slice(axis);
    const amount = padding[2 + axis] ?? 0;
    const alike = padding[6 + axis] === amount && `${constant(`last ${axis}`)}` === `${length - 1}`;
    return alike
      ? axisOf(constant('grid'), dims, axis, kernel, { padding: amount, padded: length })
      : undefined;
  };
  const [vertical, horizontal] = [along(0), along(1)];
  if (!vertical || !horizontal) return undefined;
  const axes = [vertical, horizontal];
  const pads = axes.map(({ pad }) => pad);
  const [x = '', offset = '', mask = ''] = ['x', 'offset', 'mask'].map((name) => found.get(name));
  return newNode('DeformConv', [x, conv.input[1] ?? '', offset, conv.input[2] ?? '', mask], conv.output, {
    kernel_shape: kernel,
    strides: axes.map(({ stride }) => stride),
    dilations: axes.map(({ dilation }) => dilation),
    pads: [...pads, ...pads],
    group: Number(attribute(conv, 'group')?.i ?? 1),
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
