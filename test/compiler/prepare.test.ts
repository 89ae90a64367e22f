import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { rewrite } from '../../src/compiler/compile.ts';
import { elementType, sortNodes } from '../../src/compiler/onnx/graph.ts';
import {
  AttributeProtoSchema,
  type GraphProto,
  GraphProtoSchema,
  ModelProtoSchema,
} from '../../src/compiler/onnx/onnx_pb.ts';
import {
  FLOAT,
  FLOAT16,
  int,
  node,
  SIDE,
  type Sizes,
  tinyNetwork,
  value,
  weights,
} from '../fixtures/onnx.ts';
import { largestDifference, runNetwork } from './run.ts';

// A plain Uint8Array, like fields of the decoded message.
const bytesOf = (pieces: Iterable<Uint8Array>) => new Uint8Array(Buffer.concat([...pieces]));

function graphOf(file: Uint8Array): GraphProto {
  const { graph } = fromBinary(ModelProtoSchema, file);
  if (!graph) throw new Error('no graph');
  return graph;
}

/** A model of the given graph, encoded. */
function fileOf(change: (graph: GraphProto) => void, from = tinyNetwork('fp32')): Uint8Array {
  const model = fromBinary(ModelProtoSchema, from);
  if (model.graph) change(model.graph);
  return toBinary(ModelProtoSchema, model);
}

const shapeOf = (graph: GraphProto, name: string) => {
  const found = [...graph.input, ...graph.output].find((each) => each.name === name);
  const type = found?.type?.value;
  return type?.case === 'tensorType' ? type.value.shape?.dim.map((dim) => dim.value.value) : undefined;
};

const operators = (graph: GraphProto) => graph.node.map((each) => each.opType);

test('only the matte and the named features remain outputs, in this order, and nodes that only others need are dropped', (t) => {
  const rewritten = rewrite(tinyNetwork('fp16'), 'deep', 'fp32');
  const graph = graphOf(bytesOf(rewritten.pieces));
  t.deepEqual(rewritten.outputs, ['alpha', 'deep']);
  t.deepEqual(
    graph.output.map((each) => each.name),
    ['alpha', 'deep'],
  );
  t.false(graph.initializer.some((tensor) => tensor.name === 'w3'));
  t.is(operators(graph).filter((each) => each === 'Conv').length, 2);
  t.is(graph.valueInfo.length, 0);
});

test('a tensor that was not an output can become the features', (t) => {
  const graph = graphOf(bytesOf(rewrite(tinyNetwork('fp32'), 'p1', 'fp32').pieces));
  t.deepEqual(
    graph.output.map((each) => [each.name, elementType(each)]),
    [
      ['alpha', FLOAT],
      ['p1', FLOAT],
    ],
  );
});

test('features that are not in the graph are refused', (t) => {
  t.throws(() => rewrite(tinyNetwork('fp32'), 'deepest', 'fp32'), {
    instanceOf: RangeError,
    message: /no tensor named deepest/,
  });
});

test('16-bit floats become 32-bit floats without leftover casts', (t) => {
  const graph = graphOf(bytesOf(rewrite(tinyNetwork('fp16'), 'deep', 'fp32').pieces));
  t.false(operators(graph).includes('Cast'));
  for (const tensor of graph.initializer) t.not(tensor.dataType, FLOAT16, tensor.name);
  for (const each of [...graph.input, ...graph.output]) t.is(elementType(each), FLOAT, each.name);
  const expected = weights('w1', [4, 3, 3, 3], FLOAT, 1);
  t.deepEqual(
    graph.initializer.find((tensor) => tensor.name === 'w1'),
    expected,
  );
});

test('16-bit floats in int32_data and in Constant nodes are widened too', (t) => {
  const file = fileOf((graph) => {
    const w1 = graph.initializer.find((tensor) => tensor.name === 'w1');
    if (w1) {
      w1.int32Data = [...new Uint16Array(w1.rawData.slice().buffer)];
      w1.rawData = new Uint8Array();
    }
    const [w2] = graph.initializer.splice(1, 1);
    if (w2) {
      const attribute = create(AttributeProtoSchema, { name: 'value', type: 4, t: w2 });
      graph.node.unshift(node('Constant', [], ['w2'], [attribute]));
    }
  }, tinyNetwork('fp16'));
  const graph = graphOf(bytesOf(rewrite(file, undefined, 'fp32').pieces));
  const w1 = graph.initializer.find((tensor) => tensor.name === 'w1');
  const w2 = graph.node.find((each) => each.opType === 'Constant')?.attribute[0]?.t;
  t.deepEqual(w1?.rawData, weights('w1', [4, 3, 3, 3], FLOAT, 1).rawData);
  t.deepEqual(w1?.int32Data, []);
  t.deepEqual(w2?.rawData, weights('w2', [1, 4, 3, 3], FLOAT, 2).rawData);
  t.is(w2?.dataType, FLOAT);
});

test('casts from integers remain, to 32-bit floats', (t) => {
  const file = fileOf((graph) => {
    graph.node.push(
      node('Shape', ['image'], ['dims']),
      node('Cast', ['dims'], ['half_dims'], [int('to', FLOAT16)]),
      node('Cast', ['half_dims'], ['float_dims'], [int('to', FLOAT)]),
    );
    graph.output.push(value('float_dims', FLOAT, [4]));
  }, tinyNetwork('fp16'));
  const graph = graphOf(bytesOf(rewrite(file, 'float_dims', 'fp32').pieces));
  const casts = graph.node.filter((each) => each.opType === 'Cast');
  t.is(casts.length, 1);
  t.is(casts[0]?.attribute[0]?.i, BigInt(FLOAT));
  t.deepEqual(casts[0]?.output, ['float_dims']);
});

test('one value wanted under two output names is copied', (t) => {
  const file = fileOf((graph) => {
    graph.node.push(node('Cast', ['alpha_in'], ['alpha_again'], [int('to', FLOAT)]));
    graph.output.push(value('alpha_again', FLOAT, [1, 1, SIDE, SIDE]));
  }, tinyNetwork('fp16'));
  const graph = graphOf(bytesOf(rewrite(file, 'alpha_again', 'fp32').pieces));
  const made = graph.node.flatMap((each) => each.output);
  t.true(made.includes('alpha'));
  t.true(made.includes('alpha_again'));
  t.is(new Set(made).size, made.length);
});

test('for a GPU 16-bit weights remain, and input and outputs are 32-bit floats', (t) => {
  const borders = fileOf((graph) => {
    // Published like some files: 16-bit floats at input and output as well.
    graph.node = graph.node.filter((each) => each.opType !== 'Cast');
    for (const each of graph.node) {
      each.input = each.input.map(
        (name) => ({ image_in: 'image', small: 'small_in', large: 'large_in' })[name] ?? name,
      );
      each.output = each.output.map((name) => ({ alpha_in: 'alpha', deep_in: 'deep_in' })[name] ?? name);
    }
    graph.input = [value('image', FLOAT16, [1, 3, SIDE, SIDE])];
    graph.output = [value('alpha', FLOAT16, [1, 1, SIDE, SIDE])];
  }, tinyNetwork('fp16'));
  for (const file of [tinyNetwork('fp16'), borders]) {
    const rewritten = rewrite(file, undefined, 'fp16');
    const graph = graphOf(bytesOf(rewritten.pieces));
    t.is(rewritten.precision, 'fp16');
    t.is(graph.initializer.find((tensor) => tensor.name === 'w1')?.dataType, FLOAT16);
    t.is(elementType(graph.input[0] ?? value('', 0, [])), FLOAT);
    t.is(elementType(graph.output[0] ?? value('', 0, [])), FLOAT);
    t.is(graph.node[0]?.opType, 'Cast');
    t.deepEqual(graph.node.at(-1)?.output, ['alpha']);
  }
});

/** The 16-bit network with one operator in 32 bits, whose casts are behind all other nodes, as converters write it. */
const unsorted = (sizes: Sizes = 'constant') =>
  fileOf(
    (graph) => {
      const relu = graph.node.find(({ opType }) => opType === 'LeakyRelu');
      const [from = '', to = ''] = [relu?.input[0], relu?.output[0]];
      if (relu) Object.assign(relu, { input: ['wide_in'], output: ['wide_out'] });
      graph.node.push(
        node('Cast', ['wide_out'], [to], [int('to', FLOAT16)]),
        node('Cast', [from], ['wide_in'], [int('to', FLOAT)]),
      );
    },
    tinyNetwork('fp16', sizes),
  );

test('for a GPU nodes that are out of order are sorted, and the batch is freed', (t) => {
  const rewritten = rewrite(unsorted(), undefined, 'fp16');
  const graph = graphOf(bytesOf(rewritten.pieces));
  t.true(rewritten.freeBatch);
  const made = new Set([...graph.input, ...graph.initializer].map(({ name }) => name));
  for (const each of graph.node) {
    for (const name of each.input) t.true(name === '' || made.has(name), `${name} is read before it is made`);
    for (const name of each.output) made.add(name);
  }
  // What is in order stays as it is.
  const sorted = graphOf(bytesOf(rewrite(tinyNetwork('fp16'), undefined, 'fp16').pieces));
  const again = { ...sorted, node: [...sorted.node] } as GraphProto;
  sortNodes(again);
  t.deepEqual(again.node, sorted.node);
  const circle = create(GraphProtoSchema, {
    node: [node('Relu', ['b'], ['a']), node('Relu', ['a'], ['b'])],
  });
  t.throws(() => sortNodes(circle), { instanceOf: RangeError, message: /circle/ });
});

test('the batch dimension is freed, and Reshape and Resize no longer fix it at 1', (t) => {
  const rewritten = rewrite(tinyNetwork('fp32'), 'deep', 'fp32');
  const graph = graphOf(bytesOf(rewritten.pieces));
  t.true(rewritten.freeBatch);
  t.deepEqual(shapeOf(graph, 'image'), ['batch', 3n, BigInt(SIDE), BigInt(SIDE)]);
  t.deepEqual(shapeOf(graph, 'alpha'), ['batch', 1n, BigInt(SIDE), BigInt(SIDE)]);
  for (const each of graph.node.filter(({ opType }) => opType === 'Reshape')) {
    const shape = graph.initializer.find((tensor) => tensor.name === each.input[1]);
    t.is(shape?.int64Data[0], 0n);
  }
  const resize = graph.node.find(({ opType }) => opType === 'Resize');
  t.is(graph.node.find((each) => each.output[0] === resize?.input[3])?.opType, 'Concat');
});

test('the batch is kept on request', (t) => {
  const rewritten = rewrite(tinyNetwork('fp32'), 'deep', 'fp32', undefined, 'kept');
  t.false(rewritten.freeBatch);
  const image = shapeOf(graphOf(bytesOf(rewritten.pieces)), 'image');
  t.deepEqual(image, [1n, 3n, BigInt(SIDE), BigInt(SIDE)]);
});

const entangling: Record<string, (graph: GraphProto) => void> = {
  'an operator that may mix images': (graph) => {
    for (const each of graph.node) if (each.opType === 'LeakyRelu') each.opType = 'CumSum';
  },
  'a join along the batch': (graph) => {
    for (const each of graph.node) {
      if (each.opType === 'LeakyRelu') {
        each.opType = 'Concat';
        each.attribute = [int('axis', 0)];
      }
    }
  },
  'a constant joined to the image': (graph) => {
    graph.initializer.push(weights('extra', [1, 4, SIDE, SIDE], FLOAT, 9));
    for (const each of graph.node) {
      if (each.opType === 'LeakyRelu') {
        each.opType = 'Concat';
        each.input.push('extra');
        each.attribute = [int('axis', 1)];
      }
    }
  },
  'a constant with a batch of its own': (graph) => {
    graph.initializer.push(weights('extra', [2, 4, SIDE, SIDE], FLOAT, 9));
    for (const each of graph.node) {
      if (each.opType === 'LeakyRelu') {
        each.opType = 'Add';
        each.input.push('extra');
        each.attribute = [];
      }
    }
  },
  'a shape whose first side is computed': (graph) => {
    const flat = graph.initializer.find((tensor) => tensor.name === 'flat');
    if (flat) flat.rawData = new Uint8Array(BigInt64Array.of(-1n, 4n, 16n).buffer);
  },
};

for (const [title, change] of Object.entries(entangling)) {
  test(`the batch stays 1 with ${title}`, (t) => {
    const rewritten = rewrite(fileOf(change), undefined, 'fp32');
    const graph = graphOf(bytesOf(rewritten.pieces));
    t.false(rewritten.freeBatch);
    t.deepEqual(shapeOf(graph, 'image'), [1n, 3n, BigInt(SIDE), BigInt(SIDE)]);
    const flat = graph.initializer.find((tensor) => tensor.name === 'flat');
    t.truthy(flat, 'nothing was rewritten on the way');
  });
}

test('fields and messages unknown to our subset are kept', (t) => {
  const model = fromBinary(ModelProtoSchema, tinyNetwork('fp32'));
  const metadata = { no: 14, wireType: 2, data: Uint8Array.of(3, 10, 1, 0x6b) };
  const note = { no: 10, wireType: 2, data: Uint8Array.of(2, 0x68, 0x69) };
  const documented = { no: 13, wireType: 2, data: Uint8Array.of(2, 0x68, 0x69) };
  const attribute = model.graph?.node.find((each) => each.opType === 'LeakyRelu')?.attribute[0];
  if (attribute) attribute.$unknown = [documented];
  model.$unknown = [metadata];
  if (model.graph) model.graph.$unknown = [note];
  const prepared = fromBinary(
    ModelProtoSchema,
    bytesOf(rewrite(toBinary(ModelProtoSchema, model), undefined, 'fp32').pieces),
  );
  t.deepEqual(prepared.$unknown, [metadata]);
  t.deepEqual(prepared.graph?.$unknown, [note]);
  const slope = prepared.graph?.node.find((each) => each.opType === 'LeakyRelu')?.attribute[0];
  t.deepEqual(slope?.$unknown, [documented]);
  t.is(prepared.irVersion, 8n);
  t.is(prepared.opsetImport[0]?.version, 17n);
});

test('weights in other files are refused', (t) => {
  const file = fileOf((graph) => {
    const [w1] = graph.initializer;
    if (w1) w1.dataLocation = 1;
  });
  t.throws(() => rewrite(file, undefined, 'fp32'), {
    instanceOf: RangeError,
    message: /w1 is kept in another file/,
  });
});

test('bytes that are not a network are refused', (t) => {
  t.throws(() => rewrite(Buffer.from('<!doctype html>'), undefined, 'fp32'));
  t.throws(() => rewrite(new Uint8Array(), undefined, 'fp32'), { message: /no graph/ });
  const empty = toBinary(ModelProtoSchema, create(ModelProtoSchema, { graph: create(GraphProtoSchema) }));
  t.throws(() => rewrite(empty, undefined, 'fp32'), { message: /no output/ });
});

async function sameAsPublished(
  t: ExecutionContext,
  published: Uint8Array,
  tolerance: number,
  form: 'fp32' | 'fp16' = 'fp32',
): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-prepare-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const [before, after] = [path.join(folder, 'before.onnx'), path.join(folder, 'after.onnx')];
  await writeFile(before, published);
  await writeFile(after, bytesOf(rewrite(published, 'deep', form).pieces));
  const inputs = Float32Array.from({ length: 3 * 3 * SIDE * SIDE }, (_, at) => Math.sin(at * 0.7) * 2);
  const expected = await runNetwork(before, inputs, 1);
  const single = await runNetwork(after, inputs, 1);
  const batch = await runNetwork(after, inputs, 3);
  t.true(largestDifference(expected, single) <= tolerance);
  t.true(largestDifference(single, batch) === 0);
  t.true(Math.max(...expected) - Math.min(...expected) > 0.1, 'the outputs differ from pixel to pixel');
}

for (const sizes of ['constant', 'computed'] satisfies Sizes[]) {
  test(`a 32-bit network with ${sizes} sizes runs as before, alone and in a batch`, (t) =>
    sameAsPublished(t, tinyNetwork('fp32', sizes), 1e-6));
  test(`a 16-bit network with ${sizes} sizes runs as before, alone and in a batch`, (t) =>
    sameAsPublished(t, tinyNetwork('fp16', sizes), 1e-3));
}

for (const sizes of ['constant', 'computed'] satisfies Sizes[])
  test(`for a GPU a 16-bit network with ${sizes} sizes and nodes out of order runs as before`, (t) =>
    sameAsPublished(t, unsorted(sizes), 1e-3, 'fp16'));
