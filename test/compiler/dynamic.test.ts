import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { rewrite } from '../../src/compiler/compile.ts';
import { restoreConvolutions } from '../../src/compiler/onnx/dynamic.ts';
import { floatTensor, rawTensor } from '../../src/compiler/onnx/graph.ts';
import { floatReader } from '../../src/compiler/onnx/half.ts';
import { GraphProtoSchema, ModelProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { dropUnused } from '../../src/compiler/onnx/prune.ts';
import { FLOAT, int, int64s, ints, node, value } from '../fixtures/onnx.ts';
import { random } from '../fixtures/random.ts';
import { runNetwork } from './run.ts';

const SIDE = 12;
const OUTPUTS = 16;
const [INT8, UINT8] = [3, 2];

/** A convolution as ONNX Runtime's dynamic quantisation leaves it. */
function quantised(type: 'int8' | 'uint8', zero: number): Uint8Array {
  const next = random(5);
  const integers = Int8Array.from({ length: OUTPUTS * 27 }, () => Math.floor(next() * 200) - 100);
  const bytes = new Uint8Array(integers.buffer).map((byte) => (type === 'uint8' ? byte ^ 128 : byte));
  const elements = type === 'int8' ? INT8 : UINT8;
  const bias = Float32Array.from({ length: OUTPUTS }, () => next() - 0.5);
  const graph = create(GraphProtoSchema, {
    name: 'dynamic',
    input: [value('image', FLOAT, [1, 3, SIDE, SIDE])],
    output: [value('alpha', FLOAT, [1, OUTPUTS, SIDE, SIDE])],
    initializer: [
      rawTensor('w', elements, [OUTPUTS, 3, 3, 3], bytes),
      rawTensor('w/zero', elements, [], Uint8Array.of(zero)),
      floatTensor('w/scale', [1], Float32Array.of(0.004)),
      floatTensor('b', [OUTPUTS], bias),
      int64s('b/shape', [1, -1, 1, 1]),
    ],
    node: [
      node('Reshape', ['b', 'b/shape'], ['b/map']),
      node('DynamicQuantizeLinear', ['image'], ['x', 'x/scale', 'x/zero']),
      node('Mul', ['x/scale', 'w/scale'], ['scale']),
      node(
        'ConvInteger',
        ['x', 'w', 'x/zero', 'w/zero'],
        ['sums'],
        [ints('kernel_shape', [3, 3]), ints('pads', [1, 1, 1, 1])],
      ),
      node('Cast', ['sums'], ['floats'], [int('to', 1)]),
      node('Mul', ['floats', 'scale'], ['scaled']),
      node('Add', ['scaled', 'b/map'], ['alpha']),
    ],
  });
  return toBinary(
    ModelProtoSchema,
    create(ModelProtoSchema, { irVersion: 8n, opsetImport: [{ domain: '', version: 13n }], graph }),
  );
}

const types: readonly (readonly ['int8' | 'uint8', number])[] = [
  ['int8', 0],
  ['uint8', 128],
];
for (const [type, zero] of types) {
  test(`convolutions with rounded inputs become convolutions of floats: weights of ${type}`, async (t) => {
    t.timeout(60_000);
    const folder = await mkdtemp(path.join(tmpdir(), 'cutout-dynamic-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    const file = quantised(type, zero);
    const model = fromBinary(ModelProtoSchema, file);
    const { graph } = model;
    if (!graph) throw new Error('no graph');
    restoreConvolutions(
      graph,
      floatReader(new Set(), (half) => half),
    );
    dropUnused(graph);
    t.deepEqual(
      graph.node.map(({ opType }) => opType),
      ['Conv'],
    );
    const next = random(1);
    const image = Float32Array.from({ length: 3 * SIDE ** 2 }, () => next() * 4 - 2);
    const run = async (name: string, bytes: Uint8Array) => {
      await writeFile(path.join(folder, name), bytes);
      return runNetwork(path.join(folder, name), image, 1);
    };
    const rounded = await run('rounded.onnx', file);
    const floats = await run('floats.onnx', toBinary(ModelProtoSchema, model));
    // Half a level of the image's range, 4 / 255, for each of 27 weights of at most 0.4; levels are random: far less.
    const apart = Math.max(...floats.map((each, i) => Math.abs(each - (rounded[i] ?? Number.NaN))));
    t.true(apart < 0.03, `${apart}`);
    t.true(Math.max(...floats) - Math.min(...floats) > 1);
    t.is(rewrite(file, undefined, 'bf16').precision, 'bf16');
  });
}
