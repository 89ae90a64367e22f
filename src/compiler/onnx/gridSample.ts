import { create } from '@bufbuild/protobuf';
import { buildNode, floatTensor, int64Tensor } from './build.ts';
import { isDeformable } from './deformable.ts';
import { attribute, constants, FLOAT, FLOAT16, INT64, intsOf } from './graph.ts';
import {
  type GraphProto,
  type ModelProto,
  type NodeProto,
  type TensorProto,
  TensorProtoSchema,
} from './onnx_pb.ts';

/** Returns what adds nodes, to `nodes`, and constants, to the graph, named after an output; each returns the name of what it adds. */
function writerOf(graph: GraphProto, output: string) {
  const nodes: NodeProto[] = [];
  const op = (opType: string, inputs: string[], settings: Parameters<typeof buildNode>[3] = {}): string => {
    nodes.push(buildNode(opType, inputs, `cutout/${output}/${nodes.length}`, settings));
    return nodes.at(-1)?.name ?? '';
  };
  const add = (tensor: TensorProto): string => {
    graph.initializer.push(tensor);
    return tensor.name;
  };
  const nextName = () => `cutout/${output}/constant_${graph.initializer.length}`;
  const whole = (...values: number[]) => add(int64Tensor(nextName(), values.map(BigInt)));
  const float = (...values: number[]) =>
    add(floatTensor(nextName(), values.length > 1 ? [values.length, 1, 1] : [], Float32Array.from(values)));
  const integer = (value: number) =>
    add(create(TensorProtoSchema, { name: nextName(), dataType: INT64, int64Data: [BigInt(value)] }));
  const reshape = (of: string, ...shape: number[]) => op('Reshape', [of, whole(...shape)]);
  const toFloat = (of: string) => op('Cast', [of], { to: FLOAT });
  return { nodes, nextName, op, add, whole, float, integer, reshape, toFloat };
}

/**
 * The nodes that compute a DeformConv: the samples of all its taps by one GridSample, times the mask, and their sums by a
 * convolution of one pixel. Positions are in float32, since float16 has no sixteenth of a pixel on large maps.
 * @param weights [outputs, channels / groups, rows, columns] @param linear the name of bilinear interpolation
 */
function sampled(conv: NodeProto, weights: TensorProto, graph: GraphProto, linear: string): NodeProto[] {
  const [map = '', , offset = '', bias = '', mask = ''] = conv.input;
  const [output = ''] = conv.output;
  const { nodes, nextName, op, add, whole, float, integer, reshape, toFloat } = writerOf(graph, output);
  const half = weights.dataType === FLOAT16;
  const [outputs = 0, inputs = 0, rows = 0, columns = 0] = weights.dims.map(Number);
  const taps = rows * columns;
  const integerOf = (name: string) => Number(attribute(conv, name)?.i ?? 1);
  const [groups, parts] = [integerOf('group'), integerOf('offset_group')];
  const channels = inputs * groups;
  const listOf = (name: string, usual: number) => {
    const given = intsOf(conv, name);
    return given.length > 0 ? given : [usual, usual];
  };
  const [strides, dilations, pads] = [listOf('strides', 1), listOf('dilations', 1), listOf('pads', 0)];

  // Each group of channels that shares its offsets is sampled like an image; 0 keeps a length.
  const byPart = (of: string, length: number) => (parts === 1 ? of : reshape(of, -1, length, 0, 0));
  const offsets = byPart(half ? toFloat(offset) : offset, 2 * taps);
  const [mapShape, shape] = [op('Shape', [map]), op('Shape', [offset])];
  /** Positions along an axis, of which -1 and 1 are the borders of the map: [images, taps, height, width, 1]. */
  const position = (axis: 0 | 1): string => {
    const shifts = op('Slice', [offsets, whole(axis), whole(2 * taps), whole(1), whole(2)]);
    const first = Array.from({ length: taps }, (_, tap) => {
      const step = axis === 0 ? Math.floor(tap / columns) : tap % columns;
      return step * (dilations[axis] ?? 1) - (pads[axis] ?? 0) + 0.5;
    });
    const at = integer(2 + axis);
    const length = op('Gather', [shape, at]);
    const counted = toFloat(op('Range', [integer(0), length, integer(1)]));
    const steps = op('Mul', [axis === 0 ? reshape(counted, -1, 1) : counted, float(strides[axis] ?? 1)]);
    const pixels = op('Add', [op('Add', [shifts, float(...first)]), steps]);
    const scale = op('Div', [float(2), toFloat(op('Gather', [mapShape, at]))]);
    return op('Unsqueeze', [op('Sub', [op('Mul', [pixels, scale]), float(1)]), whole(4)]);
  };
  const grid = reshape(op('Concat', [position(1), position(0)], { axis: 4 }), 0, taps, -1, 2);
  const images = byPart(half ? toFloat(map) : map, channels / parts);
  const settings = { mode: linear, padding_mode: 'zeros', align_corners: 0 };
  const floats = op('GridSample', [images, grid], settings);
  const samples = half ? op('Cast', [floats], { to: FLOAT16 }) : floats;
  const masked = mask === '' ? samples : op('Mul', [samples, reshape(byPart(mask, taps), 0, 1, taps, -1)]);
  const flat = add(
    create(TensorProtoSchema, {
      ...weights,
      name: nextName(),
      dims: [outputs, inputs * taps, 1, 1].map(BigInt),
    }),
  );
  const sums = op(
    'Conv',
    [reshape(masked, -1, channels * taps, 1, 0), flat, ...(bias === '' ? [] : [bias])],
    { kernel_shape: [1, 1], group: groups },
  );
  const sides = op('Slice', [shape, whole(2), whole(4)]);
  const last = op('Reshape', [sums, op('Concat', [whole(0, outputs), sides], { axis: 0 })]);
  for (const node of nodes) if (node.name === last) node.output = [output];
  return nodes;
}

/**
 * Writes each DeformConv, for which TensorRT for RTX has no plugin, in operators that it makes one engine of. Throws a
 * RangeError for one whose weights are computed.
 */
export function sampleDeformable({ opsetImport }: ModelProto, graph: GraphProto): void {
  const known = constants(graph);
  const version = opsetImport.find(({ domain }) => domain === '')?.version ?? 0n;
  graph.node = graph.node.flatMap((node) => {
    if (!isDeformable(node)) return [node];
    const weights = known.get(node.input[1] ?? '');
    if (!weights) throw new RangeError('the weights of a deformable convolution are computed');
    return sampled(node, weights, graph, version < 20n ? 'bilinear' : 'linear');
  });
}
