import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { compileOnnx } from '../../src/compiler/compile.ts';
import { allNodes, attribute, FLOAT16 } from '../../src/compiler/onnx/graph.ts';
import { ModelProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { decomposedNetwork } from '../fixtures/decomposed.ts';
import { type DeformableLayer, deformableLayer, deformableNetwork } from '../fixtures/deformable.ts';
import { node } from '../fixtures/onnx.ts';
import { largestDifference, runNetwork } from './run.ts';

const compiled = (file: Uint8Array, form: 'fp32' | 'tensorrt') =>
  Buffer.concat([...compileOnnx(file, undefined, form).pieces]);

const nodesOf = (file: Uint8Array) => {
  const { graph } = fromBinary(ModelProtoSchema, file);
  return graph ? [...allNodes(graph)] : [];
};
const operators = (file: Uint8Array) => nodesOf(file).map(({ opType }) => opType);

const plain: DeformableLayer = {
  kernel: [3, 3],
  strides: [1, 1],
  dilations: [1, 1],
  pads: [1, 1, 1, 1],
  groups: 1,
  offsetGroups: 1,
  reach: 1,
  full: true,
};

const layers: readonly (readonly [string, DeformableLayer, 19 | 22])[] = [
  ['3 x 3', plain, 19],
  ['3 x 3 in the newest operator set', plain, 22],
  [
    '1 x 1 without a border, bias and mask',
    { ...plain, kernel: [1, 1], pads: [0, 0, 0, 0], full: false },
    22,
  ],
  [
    'strides, dilations and a border that differ',
    { ...plain, kernel: [3, 2], strides: [2, 1], dilations: [1, 3], pads: [2, 1, 0, 3] },
    19,
  ],
  ['groups of channels and of offsets', { ...plain, kernel: [2, 3], groups: 2, offsetGroups: 4 }, 22],
  ['offsets far outside', { ...plain, reach: 8 }, 22],
];

const image = Float32Array.from({ length: 3 * 11 * 9 }, (_, at) => Math.sin(at * 12.9898) * 8);

for (const [what, layer, operatorSet] of layers)
  test(`for TensorRT a DeformConv becomes one GridSample with the same result: ${what}`, async (t) => {
    const published = deformableLayer(layer, operatorSet);
    const file = compiled(published, 'tensorrt');
    const kinds = operators(file);
    t.is(kinds.filter((kind) => kind === 'GridSample').length, 1);
    t.false(kinds.includes('DeformConv'));
    const folder = await mkdtemp(path.join(tmpdir(), 'cutout-grid-'));
    t.teardown(() => rm(folder, { recursive: true }));
    const run = async (name: string, bytes: Uint8Array) => {
      const network = path.join(folder, name);
      await writeFile(network, bytes);
      return runNetwork(network, image, 1);
    };
    const [before, after] = [await run('published.onnx', published), await run('compiled.onnx', file)];
    t.true(Math.max(...before) - Math.min(...before) > 0.1);
    const difference = largestDifference(before, after);
    t.true(difference < 2e-5, `${difference}`);
  });

test('a decomposed one becomes the same, and on the CPU stays one DeformConv', (t) => {
  const published = decomposedNetwork({ kernel: [3, 3], pad: 1 });
  t.true(operators(compiled(published, 'fp32')).includes('DeformConv'));
  const kinds = operators(compiled(published, 'tensorrt'));
  t.true(kinds.includes('GridSample'));
  t.false(kinds.includes('DeformConv') || kinds.includes('GatherND'));
});

test('in float16 the positions and samples are in float32', (t) => {
  const nodes = nodesOf(compiled(deformableNetwork({ precision: 'fp16', kind: 'shifted' }), 'tensorrt'));
  const sample = nodes.find(({ opType }) => opType === 'GridSample');
  const behind = nodes.find(({ input }) => input.includes(sample?.output[0] ?? ''));
  t.is(behind?.opType, 'Cast');
  t.is(behind && Number(attribute(behind, 'to')?.i), FLOAT16);
});

test('one whose weights are computed is refused', (t) => {
  const model = fromBinary(ModelProtoSchema, deformableLayer(plain, 19));
  const deform = model.graph?.node.find(({ opType }) => opType === 'DeformConv');
  if (deform) deform.input[1] = 'doubled';
  model.graph?.node.unshift(node('Add', ['deform_w', 'deform_w'], ['doubled']));
  t.throws(() => compiled(toBinary(ModelProtoSchema, model), 'tensorrt'), {
    instanceOf: RangeError,
    message: 'the weights of a deformable convolution are computed',
  });
});
