import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { clone } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { z } from 'zod';
import { fuse } from '../../src/compiler/fuse/fuse.ts';
import { type GraphProto, GraphProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { onnxFile, tfjsToGraph } from '../../src/compiler/tfjs/convert.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { type GraphNode, tfModel, type Weights } from '../fixtures/tfjs.ts';
import { largestDifference, runNetwork } from './run.ts';

const [HEIGHT, WIDTH] = [9, 12];

function randoms(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state / 2 ** 32) * 2 - 1;
  };
}

const random = randoms(11);
const floats = (...shape: readonly number[]): Weights => {
  const count = shape.reduce((product, side) => product * side, 1);
  return { shape, values: Array.from({ length: count }, random) };
};
const scalar = (value: number): Weights => ({ shape: [], values: [value] });
const axes: Weights = { shape: [2], values: [1, 2], dtype: 'int32' };

/** 1/6 as a 16-bit float. */
const SIXTH = 0.1666259765625;
const constants = {
  three: scalar(3),
  sixth: scalar(SIXTH),
  axes,
  channels: { shape: [], values: [3], dtype: 'int32' },
} as const;

const convolution = (
  name: string,
  input: string,
  weights: string,
  ...fused: readonly string[]
): GraphNode => ({
  name,
  op: '_FusedConv2D',
  input: [input, weights, `${weights} bias`],
  attr: { strides: [1, 1, 1, 1], padding: 'SAME', fused_ops: ['BiasAdd', ...fused] },
});
const depthwise = (name: string, input: string, weights: string): GraphNode => ({
  name,
  op: 'DepthwiseConv2dNative',
  input: [input, weights],
  attr: { strides: [1, 1, 1, 1], padding: 'SAME' },
});
const hardSigmoid = (name: string, input: string): GraphNode[] => [
  { name: `${name}/add`, op: 'AddV2', input: [input, 'three'] },
  { name: `${name}/clip`, op: 'Relu6', input: [`${name}/add`] },
  { name, op: 'Mul', input: ['sixth', `${name}/clip`] },
];
const hardSwish = (name: string, input: string): GraphNode[] => [
  { name: `${name}/scaled`, op: 'Mul', input: ['sixth', input] },
  { name: `${name}/add`, op: 'AddV2', input: [input, 'three'] },
  { name: `${name}/clip`, op: 'Relu6', input: [`${name}/add`] },
  { name, op: 'Mul', input: [`${name}/scaled`, `${name}/clip`] },
];
const mean = (name: string, input: string): GraphNode => ({
  name,
  op: 'Mean',
  input: [input, 'axes'],
  attr: { keep_dims: true },
});

interface Network {
  readonly nodes: readonly GraphNode[];
  readonly weights: Readonly<Record<string, Weights>>;
  readonly outputs: readonly string[];
}

const kernel = (name: string, size: number, inside: number, outside: number) => ({
  [name]: floats(size, size, inside, outside),
  [`${name} bias`]: floats(outside),
});

/** Block of MobileNetV3: hard swish, squeeze and excitation by a hard sigmoid, and a residual connection. */
const block: Network = {
  nodes: [
    convolution('first', 'image', 'a'),
    ...hardSwish('x', 'first'),
    depthwise('deep', 'x', 'b'),
    ...hardSwish('y', 'deep'),
    mean('squeezed', 'y'),
    convolution('reduced', 'squeezed', 'c', 'Relu'),
    convolution('wide', 'reduced', 'd'),
    ...hardSigmoid('gate', 'wide'),
    { name: 'excited', op: 'Mul', input: ['gate', 'y'] },
    convolution('narrow', 'excited', 'e'),
    { name: 'sum', op: 'AddV2', input: ['narrow', 'x'] },
    convolution('last', 'sum', 'f'),
  ],
  weights: {
    ...constants,
    ...kernel('a', 3, 3, 16),
    b: floats(3, 3, 16, 1),
    ...kernel('c', 1, 16, 8),
    ...kernel('d', 1, 8, 16),
    ...kernel('e', 1, 16, 16),
    ...kernel('f', 1, 16, 5),
  },
  outputs: ['last'],
};

/** Two separable convolutions with few channels, concatenated, with a ReLU. */
const head: Network = {
  nodes: [
    convolution('left/1', 'image', 'a', 'Relu'),
    depthwise('left/2', 'left/1', 'b'),
    convolution('left/3', 'left/2', 'c'),
    convolution('right', 'image', 'd'),
    { name: 'joined', op: 'ConcatV2', input: ['left/3', 'right', 'channels'] },
    { name: 'cut', op: 'Relu', input: ['joined'] },
    convolution('last', 'cut', 'e'),
  ],
  weights: {
    ...constants,
    ...kernel('a', 1, 3, 18),
    b: floats(5, 5, 18, 1),
    ...kernel('c', 1, 18, 7),
    ...kernel('d', 3, 3, 16),
    ...kernel('e', 1, 23, 4),
  },
  outputs: ['last'],
};

const graphOf = ({ nodes, weights, outputs }: Network): GraphProto => {
  const { json, bin } = tfModel(HEIGHT, WIDTH, nodes, weights);
  return tfjsToGraph(json, bin, outputs);
};

function fused(graph: GraphProto): GraphProto {
  const copy = clone(GraphProtoSchema, graph);
  fuse(copy);
  return copy;
}

/** Values of output 0 of both, and the largest difference between them. */
async function compared(t: ExecutionContext, before: GraphProto, after: GraphProto, image: Float32Array) {
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-fuse-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const run = async (name: string, graph: GraphProto) => {
    const file = path.join(folder, name);
    await writeFile(file, onnxFile(graph));
    return runNetwork(file, image, 1);
  };
  const values = await run('before.onnx', before);
  const most = values.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
  return { most, difference: largestDifference(values, await run('after.onnx', after)) };
}

const operators = ({ node }: GraphProto) => node.map(({ opType }) => opType);
const image = Float32Array.from({ length: 3 * HEIGHT * WIDTH }, () => random() * 4);

const rewritten: Readonly<Record<string, [Network, (names: readonly string[]) => unknown, unknown]>> = {
  'a block of MobileNetV3 loses its factors and becomes hard activations': [
    block,
    (names) => names.filter((name) => ['Clip', 'HardSwish', 'HardSigmoid', 'Mul', 'Add'].includes(name)),
    ['HardSwish', 'HardSwish', 'HardSigmoid', 'Mul', 'Add'],
  ],
  'a ReLU comes before the concatenation': [
    head,
    (names) => names.slice(-5),
    ['Conv', 'Relu', 'Relu', 'Concat', 'Conv'],
  ],
  'a factor stays before what is an output and what is no convolution': [
    {
      nodes: [
        ...hardSwish('result', 'image'),
        { name: 'other', op: 'Sigmoid', input: ['result'] },
        convolution('last', 'result', 'a'),
      ],
      weights: { ...constants, ...kernel('a', 1, 3, 4) },
      outputs: ['result', 'other', 'last'],
    },
    (names) => names,
    ['HardSwish', 'Mul', 'Sigmoid', 'Conv'],
  ],
  'a factor is not divided out of what others read too': [
    {
      nodes: [
        convolution('first', 'image', 'a'),
        ...hardSwish('x', 'first'),
        convolution('second', 'x', 'b'),
        { name: 'sum', op: 'AddV2', input: ['second', 'x'] },
        { name: 'result', op: 'Mul', input: ['sum', 'second'] },
      ],
      weights: { ...constants, ...kernel('a', 1, 3, 4), ...kernel('b', 1, 4, 4) },
      outputs: ['result'],
    },
    (names) => names,
    ['Conv', 'HardSwish', 'Mul', 'Conv', 'Add', 'Mul'],
  ],
  'another clipping is left as it is': [
    {
      nodes: [
        { name: 'add', op: 'AddV2', input: ['image', 'two'] },
        { name: 'clip', op: 'Relu6', input: ['add'] },
        { name: 'result', op: 'Mul', input: ['clip', 'image'] },
      ],
      weights: { two: scalar(2) },
      outputs: ['result'],
    },
    (names) => names,
    ['Add', 'Clip', 'Mul'],
  ],
};

for (const [title, [network, look, expected]] of Object.entries(rewritten)) {
  test(`${title}, with the same result`, async (t) => {
    const before = graphOf(network);
    const after = fused(before);
    t.deepEqual(look(operators(after)), expected);
    t.deepEqual(after.output, before.output);
    const { most, difference } = await compared(t, before, after, image);
    t.true(difference <= most * 2e-6, `off by ${difference} of ${most}`);
  });
}

test('a depthwise convolution of 18 channels gets 14 zero channels, one of 16 none', (t) => {
  const channels = ({ node, initializer }: GraphProto, name: string) => {
    const weights = node.find((each) => each.name === name)?.input[1];
    return initializer.find((each) => each.name === weights)?.dims.map(Number);
  };
  const after = fused(graphOf(head));
  t.deepEqual(channels(after, 'left/1/linear'), [32, 3, 1, 1]);
  t.deepEqual(channels(after, 'left/2'), [32, 1, 5, 5]);
  t.deepEqual(channels(after, 'left/3'), [7, 32, 1, 1]);
  t.deepEqual(channels(fused(graphOf(block)), 'deep'), [16, 1, 3, 3]);
});

test('a convolution whose result is an output of the graph is not padded with zero channels', (t) => {
  const { node } = fused(graphOf({ ...head, outputs: ['last', 'left/2'] }));
  const deep = node.find(({ name }) => name === 'left/2');
  t.is(deep?.attribute.find(({ name }) => name === 'group')?.i, 18n);
});

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const modelsDir = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');
const source = path.join(modelsDir, 'centernet', 'source.tfjs');
const manifestSchema = z.object({
  file: z.object({ format: z.object({ jsonBytes: z.number(), output: z.string() }) }),
  features: z.string(),
  input: z.object({ width: z.number(), height: z.number() }),
});

test('the detector returns the same probabilities as before', async (t) => {
  if (!existsSync(source)) {
    sayLeftOut(t, `the network centernet is not in ${modelsDir}`);
    return;
  }
  const text = await readFile(path.join(root, 'models', 'centernet', 'model.json'), 'utf8');
  const { file, features, input } = manifestSchema.parse(JSON.parse(text));
  const bytes = await readFile(source);
  const { jsonBytes, output } = file.format;
  const json = new TextDecoder().decode(bytes.subarray(0, jsonBytes));
  const graph = tfjsToGraph(json, bytes.subarray(jsonBytes), [output, features], input);
  const after = fused(graph);
  t.false(operators(after).includes('Clip'));
  t.is(operators(after).filter((name) => name === 'HardSwish').length, 20);
  const waves = Float32Array.from(
    { length: 3 * input.height * input.width },
    (_, at) => 127 + 120 * Math.sin((at % input.width) / 9) * Math.cos(at / input.width / 13),
  );
  const { most, difference } = await compared(t, graph, after, waves);
  t.true(most > 0.01, `the largest probability is ${most}`);
  t.true(difference < 2e-5, `off by ${difference}`);
});
