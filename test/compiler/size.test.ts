import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { rewrite } from '../../src/compiler/compile.ts';
import {
  type GraphProto,
  GraphProtoSchema,
  ModelProtoSchema,
  TensorProtoSchema,
} from '../../src/compiler/onnx/onnx_pb.ts';
import { freeSize } from '../../src/compiler/onnx/size.ts';
import {
  FLOAT,
  INT64,
  int,
  int64s,
  ints,
  node,
  text,
  tinyNetwork,
  value,
  weights,
} from '../fixtures/onnx.ts';
import { largestDifference, runNetwork } from './run.ts';

const conv = (input: string, weight: string, output: string, strides = [1, 1], dilations = [1, 1]) =>
  node(
    'Conv',
    [input, weight],
    [output],
    [
      ints('kernel_shape', [3, 3]),
      ints('strides', strides),
      ints('dilations', dilations),
      ints('pads', [...dilations, ...dilations]),
    ],
  );

/** A small U of convolutions as published for images of height x width, which its two Resize nodes fix. */
function published(
  height: number,
  width: number,
  change: (graph: GraphProto) => void = () => {},
): Uint8Array {
  const graph = create(GraphProtoSchema, {
    name: 'u',
    input: [value('image', FLOAT, [1, 3, height, width])],
    output: [
      value('alpha', FLOAT, [1, 1, height, width]),
      value('deep', FLOAT, [1, 4, height / 4, width / 4]),
    ],
    initializer: [
      weights('w1', [4, 3, 3, 3], FLOAT, 1),
      weights('w2', [4, 4, 3, 3], FLOAT, 2),
      weights('w3', [4, 4, 3, 3], FLOAT, 3),
      weights('w4', [1, 8, 3, 3], FLOAT, 4),
      int64s('half', [1, 4, height / 2, width / 2]),
      int64s('zero', [0]),
      int64s('two', [2]),
      int64s('whole', [height, width]),
    ],
    node: [
      conv('image', 'w1', 'c1', [2, 2]),
      node('Relu', ['c1'], ['r1']),
      node(
        'MaxPool',
        ['r1'],
        ['p1'],
        [ints('kernel_shape', [2, 2]), ints('strides', [2, 2]), int('ceil_mode', 1)],
      ),
      conv('p1', 'w2', 'deep', [1, 1], [2, 2]),
      node('Resize', ['deep', '', '', 'half'], ['up1'], [text('mode', 'linear')]),
      conv('r1', 'w3', 'c3'),
      node('Concat', ['up1', 'c3'], ['both'], [int('axis', 1)]),
      conv('both', 'w4', 'small'),
      node('Shape', ['small'], ['dims']),
      node('Slice', ['dims', 'zero', 'two', 'zero'], ['front']),
      node('Concat', ['front', 'whole'], ['sizes'], [int('axis', 0)]),
      node('Resize', ['small', '', '', 'sizes'], ['large'], [text('mode', 'linear')]),
      node('Sigmoid', ['large'], ['alpha']),
    ],
  });
  change(graph);
  return toBinary(
    ModelProtoSchema,
    create(ModelProtoSchema, { irVersion: 8n, opsetImport: [{ domain: '', version: 17n }], graph }),
  );
}

const graphOf = (file: Uint8Array): GraphProto => {
  const { graph } = fromBinary(ModelProtoSchema, file);
  if (!graph) throw new Error('no graph');
  return graph;
};
const scalar = (name: string, index: number) => Object.assign(int64s(name, [index]), { dims: [] });
/** What stands for an input that is not given. */
const none = (name: string) => create(TensorProtoSchema, { name, dataType: FLOAT, dims: [0n] });
const bytesOf = (pieces: Iterable<Uint8Array>) => new Uint8Array(Buffer.concat([...pieces]));
const dimsOf = (graph: GraphProto, name: string) => {
  const type = [...graph.input, ...graph.output].find((each) => each.name === name)?.type?.value;
  return type?.case === 'tensorType' ? type.value.shape?.dim.map((dim) => dim.value.value) : undefined;
};

const image = (height: number, width: number) =>
  Float32Array.from({ length: 3 * height * width }, (_, i) => Math.sin(i * 0.7) + Math.cos(i * 0.013));

test('a convolutional network gets dynamic sizes; its constant sizes become factors', (t) => {
  const rewritten = rewrite(published(16, 24), 'deep', 'fp32');
  const graph = graphOf(bytesOf(rewritten.pieces));
  t.is(rewritten.sizeStep, 4);
  t.true(rewritten.freeBatch);
  t.deepEqual(dimsOf(graph, 'image'), ['batch', 3n, 'height', 'width']);
  t.deepEqual(dimsOf(graph, 'alpha'), ['batch', 1n, 'height', 'width']);
  t.deepEqual(dimsOf(graph, 'deep'), ['batch', 4n, 'deep height', 'deep width']);
  const operators = graph.node.map(({ opType }) => opType);
  t.false(operators.includes('Shape'));
  for (const resize of graph.node.filter(({ opType }) => opType === 'Resize')) {
    const scales = graph.initializer.find(({ name }) => name === resize.input[2]);
    t.deepEqual(scales?.rawData, new Uint8Array(Float32Array.of(1, 1, 2, 2).buffer));
  }
});

test('a network with dynamic sizes gives at every size the result of one published for that size', async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-size-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const free = path.join(folder, 'free.onnx');
  await writeFile(free, bytesOf(rewrite(published(16, 24), undefined, 'fp32').pieces));
  for (const [height, width] of [
    [16, 24],
    [4, 4],
    [32, 12],
    [20, 28],
  ] as const) {
    const fixed = path.join(folder, 'fixed.onnx');
    await writeFile(fixed, published(height, width));
    const [wanted, found] = [
      await runNetwork(fixed, image(height, width), 1),
      await runNetwork(free, image(height, width), 1, { height, width }),
    ];
    t.true(largestDifference(wanted, found) < 1e-6, `${height} x ${width}`);
    t.true(Math.max(...wanted) - Math.min(...wanted) > 0.01);
  }
});

test('sizes read from other maps become factors too, as older exports have them', async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-size-'));
  t.teardown(() => rm(folder, { recursive: true }));
  /** As PyTorch wrote `F.interpolate(x, size=y.shape[2:])` in operator set 11. */
  const older = (height: number, width: number) => {
    const file = published(height, width, (graph) => {
      const sizesOf = (map: string, of: string, to: string) => [
        ...[2, 3].flatMap((axis) => [
          node('Shape', [of], [`${to}/${axis}/shape`]),
          node('Gather', [`${to}/${axis}/shape`, `axis${axis}`], [`${to}/${axis}`], [int('axis', 0)]),
        ]),
        ...[2, 3].map((axis) =>
          node('Unsqueeze', [`${to}/${axis}`], [`${to}/${axis}/one`], [ints('axes', [0])]),
        ),
        node('Concat', [`${to}/2/one`, `${to}/3/one`], [`${to}/sides`], [int('axis', 0)]),
        node('Cast', [`${to}/sides`], [`${to}/whole`], [int('to', INT64)]),
        node('Shape', [map], [`${to}/dims`]),
        node('Slice', [`${to}/dims`, 'zero', 'two', 'zero'], [`${to}/front`]),
        node('Concat', [`${to}/front`, `${to}/whole`], [to], [int('axis', 0)]),
      ];
      graph.initializer.push(scalar('axis2', 2), scalar('axis3', 3), none('none'));
      for (const each of graph.node) if (each.opType === 'Resize') each.input[1] = each.input[2] = 'none';
      graph.node = graph.node.flatMap((each) => {
        if (each.output[0] === 'front' || each.output[0] === 'sizes' || each.output[0] === 'dims') return [];
        if (each.output[0] === 'up1') each.input[3] = 'up1/sizes';
        const before =
          each.output[0] === 'up1'
            ? sizesOf('deep', 'r1', 'up1/sizes')
            : each.output[0] === 'large'
              ? sizesOf('small', 'image', 'sizes')
              : [];
        return [...before, each];
      });
    });
    const model = fromBinary(ModelProtoSchema, file);
    for (const each of model.opsetImport) each.version = 11n;
    return toBinary(ModelProtoSchema, model);
  };
  const rewritten = rewrite(older(16, 24), undefined, 'fp32');
  t.is(rewritten.sizeStep, 4);
  const [free, fixed] = [path.join(folder, 'free.onnx'), path.join(folder, 'fixed.onnx')];
  await writeFile(free, bytesOf(rewritten.pieces));
  for (const [height, width] of [
    [16, 24],
    [20, 28],
  ] as const) {
    await writeFile(fixed, older(height, width));
    const [wanted, found] = [
      await runNetwork(fixed, image(height, width), 1),
      await runNetwork(free, image(height, width), 1, { height, width }),
    ];
    t.true(largestDifference(wanted, found) < 1e-6, `${height} x ${width}`);
  }
});

const fixing: Record<string, (graph: GraphProto) => void> = {
  'a Resize by a part': (graph) => {
    const half = graph.initializer.find(({ name }) => name === 'half');
    if (half) half.rawData = new Uint8Array(BigInt64Array.of(1n, 4n, 9n, 12n).buffer);
  },
  'an operator that is not known': (graph) => {
    for (const each of graph.node) if (each.opType === 'Relu') each.opType = 'CumSum';
  },
  'a constant with sides of its own': (graph) => {
    graph.initializer.push(weights('extra', [1, 4, 8, 12], FLOAT, 9));
    for (const each of graph.node) {
      if (each.opType !== 'Relu') continue;
      each.opType = 'Add';
      each.input.push('extra');
    }
  },
  'a convolution whose sides only happen to fit': (graph) => {
    // Without padding: 24 becomes 11, which no integer factor makes 24 again.
    for (const each of graph.node) if (each.output[0] === 'c1') each.attribute = each.attribute.slice(0, 2);
  },
  'its size used for something else': (graph) => {
    graph.node.push(
      node('Cast', ['dims'], ['numbers'], [int('to', FLOAT)]),
      node('Add', ['large', 'numbers'], ['odd']),
    );
    for (const each of graph.node) if (each.opType === 'Sigmoid') each.input = ['odd'];
  },
};

for (const [title, change] of Object.entries(fixing)) {
  test(`the size stays fixed with ${title}`, (t) => {
    const graph = graphOf(published(16, 24, change));
    const before = toBinary(GraphProtoSchema, graph);
    t.is(freeSize(graph), undefined);
    t.deepEqual(toBinary(GraphProtoSchema, graph), before, 'nothing was rewritten on the way');
  });
}

test('shapes given to Reshape, and 16-bit floats, which are for GPUs, keep their size', (t) => {
  t.is(rewrite(tinyNetwork('fp32'), 'deep', 'fp32').sizeStep, 0);
  t.is(rewrite(tinyNetwork('fp16'), 'deep', 'fp16').sizeStep, 0);
});
