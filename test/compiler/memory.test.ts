import { create } from '@bufbuild/protobuf';
import test from 'ava';
import { estimateOf, needOf } from '../../src/compiler/onnx/memory.ts';
import { GraphProtoSchema, type NodeProto, type TensorProto } from '../../src/compiler/onnx/onnx_pb.ts';
import { FLOAT, int, int64s, ints, node, text, value, weights } from '../fixtures/onnx.ts';

const IMAGE = [1, 3, 8, 8];

/** A graph from `image` to `alpha`. */
const graph = (nodes: NodeProto[], initializer: TensorProto[] = []) =>
  create(GraphProtoSchema, {
    input: [value('image', FLOAT, IMAGE)],
    output: [value('alpha', FLOAT, IMAGE)],
    node: nodes,
    initializer,
  });

test('what a graph needs is its weights and the maps that live at the same time', (t) => {
  const conv = node('Conv', ['image', 'w'], ['c'], [ints('pads', [1, 1, 1, 1])]);
  const made = graph(
    [
      conv,
      node('Relu', ['c'], ['r']),
      node('MaxPool', ['r'], ['p'], [ints('kernel_shape', [2, 2]), ints('strides', [2, 2])]),
      node('Shape', ['image'], ['whole']),
      node('Slice', ['whole', 'two', 'four'], ['sides']),
      node('Slice', ['channels', 'zero', 'two'], ['front']),
      node('Concat', ['front', 'sides'], ['sizes'], [int('axis', 0)]),
      node('Resize', ['p', '', '', 'sizes'], ['up']),
      node('Concat', ['up', 'r'], ['alpha'], [int('axis', 1)]),
    ],
    [
      weights('w', [4, 3, 3, 3], FLOAT, 1),
      int64s('zero', [0]),
      int64s('two', [2]),
      int64s('four', [4]),
      int64s('channels', [1, 4, 9]),
    ],
  );
  const { complete, ...need } = needOf(made, IMAGE);
  t.true(complete);
  // `r` and `up` have 4 x 8 x 8 floats, `alpha` 8 x 8 x 8; 6 integers of 8 bytes, and 4 that give the sizes.
  t.deepEqual(need, { weights: 4 * 3 * 9 * 4, others: (6 + 4) * 8, maps: (2 * 4 + 8) * 64 * 4 });
  // At twice the size the maps are four times as large.
  t.is(needOf(made, [1, 3, 16, 16]).maps, 4 * need.maps);
});

test('maps that no machine holds are counted without making them', (t) => {
  const side = 117_000;
  const bytes = 4 * side ** 2;
  const small = [node('ReduceMean', ['huge'], ['mean']), node('Add', ['image', 'mean'], ['alpha'])];
  const square = int64s('square', [1, 1, side, side]);
  const first = [int64s('start', [0]), int64s('one', [1])];
  const dot = [weights('dot', [1, 1, 1, 1], FLOAT, 1), square];
  const pixel = node('Slice', ['image', 'start', 'one', 'one'], ['pixel']);
  const made = {
    ConstantOfShape: graph([node('ConstantOfShape', ['square'], ['huge']), ...small], [square]),
    Expand: graph([node('Expand', ['dot', 'square'], ['huge']), ...small], dot),
    Tile: graph([node('Tile', ['dot', 'square'], ['huge']), ...small], dot),
    Resize: graph(
      [pixel, node('Resize', ['pixel', '', '', 'square'], ['huge']), ...small],
      [...first, square],
    ),
  };
  for (const [name, each] of Object.entries(made)) {
    const need = needOf(each, IMAGE);
    t.true(need.complete, name);
    t.true(estimateOf(need).bytes >= bytes, name);
  }
});

test('an operator whose result is not known makes the estimate a lower bound', (t) => {
  const need = needOf(graph([node('NonZero', ['image'], ['at']), node('Cast', ['at'], ['alpha'])]), IMAGE);
  t.false(need.complete);
  t.is(need.maps, 3 * 64 * 4);
});

test('what a file says of itself makes neither long work nor a wrong estimate', (t) => {
  const deep = Array.from({ length: 40 }, (_, at) => node('Gather', [`g${at}`, `g${at}`], [`g${at + 1}`]));
  const nested = graph([
    node('Identity', ['image'], ['g0']),
    ...deep,
    node('Add', ['image', 'g40'], ['alpha']),
  ]);
  t.false(needOf(nested, IMAGE).complete, 'the number of axes doubles forty times');

  const lies = Object.assign(int64s('one', new Array<number>(300_000).fill(1)), { dims: [1n] });
  const long = graph([node('Reshape', ['image', 'one'], ['alpha'])], [lies]);
  t.false(needOf(long, IMAGE).complete, 'a list has more values than it says');

  const sides = int64s('sides', [...new Array<number>(20).fill(2 ** 62), 0]);
  const empty = graph(
    [node('ConstantOfShape', ['sides'], ['none']), node('Add', ['image', 'none'], ['alpha'])],
    [sides],
  );
  const below = graph(
    [node('Relu', ['image'], ['alpha'])],
    [Object.assign(weights('w', [1], FLOAT, 1), { dims: [-1000n, 1000n, 1000n] })],
  );
  const times = Array.from({ length: 20 }, (_, at) =>
    node('Tile', [at ? `t${at - 1}` : 'image', 'by'], [`t${at}`]),
  );
  const huge = graph(
    [...times, node('Add', ['image', 't19'], ['alpha'])],
    [int64s('by', [1, 1, 2 ** 62, 2 ** 62])],
  );
  for (const each of [empty, below, huge]) {
    const { bytes } = estimateOf(needOf(each, IMAGE));
    t.true(Number.isSafeInteger(bytes) && bytes >= 0, `${bytes}`);
  }

  const fitted = node(
    'Resize',
    ['image', '', '', 'large'],
    ['alpha'],
    [text('keep_aspect_ratio_policy', 'not_larger')],
  );
  const large = int64s('large', [1, 3, 1_000_000, 8]);
  t.false(needOf(graph([fitted], [large]), IMAGE).complete, 'one of the sides is not what the list says');
});
