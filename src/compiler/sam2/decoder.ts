import { floatTensor } from '../onnx/build.ts';
import { attribute, constants, FLOAT, floatValues, shapeOf } from '../onnx/graph.ts';
import type { GraphProto, TensorProto, ValueInfoProto } from '../onnx/onnx_pb.ts';

/** Pixels of the encoder's input for one of each input of the decoder. */
const STEPS: Readonly<Record<string, number>> = {
  image_embed: 16,
  high_res_feats_0: 4,
  high_res_feats_1: 8,
  mask_input: 4,
};

function setSides(value: ValueInfoProto, side: number): void {
  const sides = shapeOf(value)?.slice(2) ?? [];
  if (sides.length !== 2) throw new RangeError(`its input ${value.name} is no map`);
  for (const dim of sides) dim.value = { case: 'dimValue', value: BigInt(side) };
}

/** Side of the encoder's input that the decoder is published for. */
const PUBLISHED_SIDE = 1024;

/** Centres of a grid's cells from -1 to 1: [side, side, 2] of x and y. */
function centres(name: string, side: number): TensorProto {
  const at = (index: number) => ((index + 0.5) / side) * 2 - 1;
  const values = new Float32Array(side * side * 2);
  for (let y = 0; y < side; y++)
    for (let x = 0; x < side; x++) values.set([at(x), at(y)], (y * side + x) * 2);
  return floatTensor(name, [side, side, 2], values);
}

/**
 * Changes SAM 2's decoder for an encoder of another input size: the sizes of its inputs, the places of the embedding's
 * values and the divisor of the points, the constants that depend on them. Throws a RangeError for another network.
 */
export function resizeDecoder(graph: GraphProto, side: number): void {
  for (const [name, step] of Object.entries(STEPS)) {
    const input = graph.input.find((each) => each.name === name);
    if (!input) throw new RangeError(`it has no input ${name}`);
    setSides(input, side / step);
  }
  const places = graph.node.flatMap((node) => {
    const value = node.opType === 'Constant' ? attribute(node, 'value') : undefined;
    const [height, width, axes, more] = value?.t?.dims ?? [];
    const isGrid = value?.t?.dataType === FLOAT && height === width && axes === 2n && more === undefined;
    return value && isGrid ? [value] : [];
  });
  const [grid, another] = places;
  if (!grid?.t || another) throw new RangeError('the places of its embedding are not found');
  grid.t = centres(grid.t.name, side / (STEPS['image_embed'] ?? 1));
  const known = constants(graph);
  let divided = 0;
  for (const node of graph.node) {
    const divisor = node.opType === 'Div' ? known.get(node.input[1] ?? '') : undefined;
    if (divisor?.dims.length !== 0 || floatValues(divisor)?.[0] !== PUBLISHED_SIDE) continue;
    node.input[1] = `cutout/side_${divided++}`;
    graph.initializer.push(floatTensor(node.input[1], [], Float32Array.of(side)));
  }
  if (divided === 0) throw new RangeError('it does not divide points by the side of its input');
  graph.valueInfo.length = 0;
}
