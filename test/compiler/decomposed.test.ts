import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { compileOnnx } from '../../src/compiler/compile.ts';
import { ModelProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { type Decomposed, decomposedNetwork, HEIGHT, WIDTH } from '../fixtures/decomposed.ts';
import { largestDifference, runNetwork } from './run.ts';

const compiled = (file: Uint8Array) => Buffer.concat([...compileOnnx(file, undefined, 'fp32').pieces]);

function operators(file: Uint8Array): readonly string[] {
  const { graph } = fromBinary(ModelProtoSchema, file);
  return graph?.node.map(({ opType }) => opType) ?? [];
}

const image = Float32Array.from({ length: 3 * HEIGHT * WIDTH }, (_, at) => Math.sin(at * 12.9898) * 2);

const layers: readonly (readonly [string, Decomposed])[] = [
  ['3 x 3', { kernel: [3, 3], pad: 1 }],
  ['1 x 1 without a border', { kernel: [1, 1], pad: 0 }],
  ['3 x 2, every second pixel', { kernel: [3, 2], pad: 2, stride: 2 }],
  ['dilated, in two groups', { kernel: [2, 3], pad: 2, dilation: 2, groups: 2 }],
];

for (const [what, layer] of layers)
  test(`a decomposed deformable convolution becomes one operator with the same result: ${what}`, async (t) => {
    const published = decomposedNetwork(layer);
    const file = compiled(published);
    const kinds = operators(file);
    t.is(kinds.filter((kind) => kind === 'DeformConv').length, 1);
    t.false(kinds.includes('GatherND'));
    const folder = await mkdtemp(path.join(tmpdir(), 'cutout-decomposed-'));
    t.teardown(() => rm(folder, { recursive: true }));
    const results = [];
    for (const [name, bytes] of [
      ['published', published],
      ['compiled', file],
    ] as const) {
      const network = path.join(folder, `${name}.onnx`);
      await writeFile(network, bytes);
      results.push(await runNetwork(network, image, 1));
    }
    const [before, after] = results as [Float32Array, Float32Array];
    t.true(Math.max(...before) - Math.min(...before) > 0.1);
    const difference = largestDifference(before, after);
    t.true(difference < 1e-5, `${difference}`);
  });

for (const [what, change] of [
  ['a position of its grid is another', { moved: 40 }],
  ['a pixel has the weight of another', { swapped: true }],
  ['its border repeats the edge of the map', { edge: true }],
  ['the convolution over the samples has a border', { bordered: true }],
  ['another operator may differ in the newer operator set', { unknown: true }],
] as const)
  test(`it stays as it is if ${what}`, (t) => {
    const published = decomposedNetwork({ kernel: [3, 3], pad: 1, ...change });
    const kinds = operators(compiled(published));
    t.false(kinds.includes('DeformConv'));
    t.is(kinds.filter((kind) => kind === 'GatherND').length, 4);
  });
