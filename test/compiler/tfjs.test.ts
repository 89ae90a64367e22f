import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'ava';
import { tfjsToOnnx } from '../../src/compiler/tfjs/convert.ts';
import {
  at,
  type Corners,
  convolved,
  type GraphNode,
  type Image,
  imageOf,
  resized,
  tfModel,
  type Weights,
} from '../fixtures/tfjs.ts';
import { runNetwork } from './run.ts';

const HEIGHT = 7;
const WIDTH = 10;

/** Steps of 1/16 between -1.5 and 1.5: exact in 16-bit floats, and both signs of every activation occur. */
function steps(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (((state >>> 16) % 49) - 24) / 16;
  };
}

const next = steps(7);
const image = imageOf(HEIGHT, WIDTH, 3, () => next() * 4);

const weights = (shape: readonly number[], seed: number, half = false): Weights => {
  const value = steps(seed);
  const count = shape.reduce((product, side) => product * side, 1);
  return { shape, values: Array.from({ length: count }, value), half };
};

/** [H,W,C] as the values of [1,C,H,W]. */
function planes(image: Image): number[] {
  const { height, width, channels } = image;
  return imageOf(channels, height, width, (c, y, x) => at(image, y, x, c) ?? Number.NaN).values.slice();
}

const map = (image: Image, change: (value: number, c: number) => number): Image => ({
  ...image,
  values: image.values.map((value, index) => change(value, index % image.channels)),
});

const relu = (value: number) => Math.max(value, 0);
const relu6 = (value: number) => Math.min(relu(value), 6);

interface Case {
  readonly nodes: readonly GraphNode[];
  readonly weights?: Readonly<Record<string, Weights>>;
  readonly expected: Image;
}

/** One operator whose node is named `result` and reads the image first. */
const one = (
  op: string,
  attr: GraphNode['attr'],
  constants: Readonly<Record<string, Weights>>,
  expected: Image,
): Case => ({
  nodes: [{ name: 'result', op, input: ['image', ...Object.keys(constants)], ...(attr && { attr }) }],
  weights: constants,
  expected,
});

const wide = weights([3, 5, 3, 4], 1);
const deep = weights([3, 3, 3, 2], 2, true);
const bias = weights([4], 3);
const channelBias = weights([6], 4);
const factor = weights([3], 5);
const whole = (...values: number[]): Weights => ({ shape: [values.length], values, dtype: 'int32' });
const number = (value: number): Weights => ({ shape: [], values: [value], dtype: 'int32' });

const biased = (image: Image, { values }: Weights) => map(image, (v, c) => v + (values[c] ?? 0));

const resize = (corners: Corners, height: number, width: number) =>
  one(
    'ResizeBilinear',
    { align_corners: corners === 'aligned', half_pixel_centers: corners === 'half pixel' },
    { size: whole(height, width) },
    resized(image, height, width, corners),
  );

const mean = map(
  imageOf(1, 1, 3, () => 0),
  (_, c) => {
    const values = image.values.filter((__, index) => index % 3 === c);
    return values.reduce((a, b) => a + b, 0) / values.length;
  },
);

const cases: Readonly<Record<string, Case>> = {
  'a convolution, SAME, stride 1': one(
    'Conv2D',
    { strides: [1, 1, 1, 1], padding: 'SAME' },
    { wide },
    convolved(image, wide, { stride: 1, padding: 'SAME' }, false),
  ),
  'a convolution, SAME, stride 2 on odd and even sides, bias and ReLU': one(
    '_FusedConv2D',
    { strides: [1, 2, 2, 1], padding: 'SAME', fused_ops: ['BiasAdd', 'Relu'] },
    { wide, bias },
    map(biased(convolved(image, wide, { stride: 2, padding: 'SAME' }, false), bias), relu),
  ),
  'a convolution, VALID, and bias': one(
    '_FusedConv2D',
    { strides: [1, 1, 1, 1], padding: 'VALID', fused_ops: ['BiasAdd'] },
    { wide, bias },
    biased(convolved(image, wide, { stride: 1, padding: 'VALID' }, false), bias),
  ),
  'a depthwise convolution with two maps a channel, dilated, of 16-bit weights': one(
    'DepthwiseConv2dNative',
    { strides: [1, 1, 1, 1], dilations: [1, 2, 2, 1], padding: 'VALID' },
    { deep },
    convolved(image, deep, { stride: 1, dilation: 2, padding: 'VALID' }, true),
  ),
  'a depthwise convolution with bias, stride 2': one(
    'FusedDepthwiseConv2dNative',
    { strides: [1, 2, 2, 1], padding: 'SAME', fused_ops: ['BiasAdd'] },
    { deep, channelBias },
    biased(convolved(image, deep, { stride: 2, padding: 'SAME' }, true), channelBias),
  ),
  'Add of a value a channel': one('Add', {}, { factor }, biased(image, factor)),
  'Mul of two tensors, one of them renamed': {
    nodes: [
      { name: 'same', op: 'Identity', input: ['image'] },
      { name: 'result', op: 'Mul', input: ['same:0', 'image'] },
    ],
    expected: map(image, (v) => v * v),
  },
  Relu: one('Relu', {}, {}, map(image, relu)),
  Relu6: one('Relu6', {}, {}, map(image, relu6)),
  Sigmoid: one(
    'Sigmoid',
    {},
    {},
    map(image, (v) => 1 / (1 + Math.exp(-v))),
  ),
  'Mean over rows and columns': one('Mean', { keep_dims: true }, { axes: whole(1, 2) }, mean),
  'ConcatV2 of channels, the axis counted from the back': {
    nodes: [
      { name: 'positive', op: 'Relu', input: ['image'] },
      { name: 'result', op: 'ConcatV2', input: ['image', 'positive', 'axis'] },
    ],
    weights: { axis: number(-1) },
    expected: imageOf(HEIGHT, WIDTH, 6, (y, x, c) =>
      c < 3 ? (at(image, y, x, c) ?? Number.NaN) : relu(at(image, y, x, c - 3) ?? Number.NaN),
    ),
  },
  'ResizeBilinear, larger': resize('plain', 14, 25),
  'ResizeBilinear, corners aligned': resize('aligned', 13, 19),
  'ResizeBilinear, half pixels': resize('half pixel', 14, 20),
};

for (const [title, { nodes, weights: constants = {}, expected }] of Object.entries(cases)) {
  test(`${title} gives the result of its definition`, async (t) => {
    const { json, bin } = tfModel(HEIGHT, WIDTH, nodes, constants);
    const folder = await mkdtemp(path.join(tmpdir(), 'cutout-tfjs-'));
    t.teardown(() => rm(folder, { recursive: true }));
    const file = path.join(folder, 'network.onnx');
    await writeFile(file, tfjsToOnnx(json, bin, ['result']));
    const found = await runNetwork(file, Float32Array.from(planes(image)), 1);
    const wanted = planes(expected);
    t.is(found.length, wanted.length);
    const worst = wanted.reduce(
      (most, value, index) => Math.max(most, Math.abs(value - (found[index] ?? Number.NaN))),
      0,
    );
    t.true(worst < 1e-4, `off by ${worst}`);
    t.true(new Set(wanted).size > 2, 'the case tells one value from another');
  });
}

test('only what the outputs need is converted, in the given order', (t) => {
  const { json, bin } = tfModel(HEIGHT, WIDTH, [
    { name: 'left', op: 'Relu', input: ['image'] },
    { name: 'right', op: 'Sigmoid', input: ['image'] },
    { name: 'sorted', op: 'TopKV2', input: ['left'] },
  ]);
  const text = Buffer.from(tfjsToOnnx(json, bin, ['right', 'left'])).toString('latin1');
  t.true(text.lastIndexOf('right') < text.lastIndexOf('left'));
  t.false(text.includes('sorted'));
});

test('an image of another size than published scales the maps accordingly', async (t) => {
  const small = imageOf(6, 8, 3, () => next() * 4);
  const nodes: readonly GraphNode[] = [
    {
      name: 'half',
      op: 'Conv2D',
      input: ['image', 'wide'],
      attr: { strides: [1, 2, 2, 1], padding: 'SAME' },
    },
    {
      name: 'result',
      op: 'ResizeBilinear',
      input: ['half', 'size'],
      attr: { align_corners: false, half_pixel_centers: true },
    },
  ];
  // Published for 12 x 16.
  const { json, bin } = tfModel(12, 16, nodes, { wide, size: whole(12, 16) });
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-tfjs-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = path.join(folder, 'network.onnx');
  await writeFile(file, tfjsToOnnx(json, bin, ['result'], { height: 6, width: 8 }));
  const found = await runNetwork(file, Float32Array.from(planes(small)), 1);
  const half = convolved(small, wide, { stride: 2, padding: 'SAME' }, false);
  const wanted = planes(resized(half, 6, 8, 'half pixel'));
  t.is(found.length, wanted.length);
  t.true(wanted.every((value, index) => Math.abs(value - (found[index] ?? Number.NaN)) < 1e-4));
});

test('a size that gives a map a fractional number of pixels is refused', (t) => {
  const nodes: readonly GraphNode[] = [{ name: 'result', op: 'ResizeBilinear', input: ['image', 'size'] }];
  const { json, bin } = tfModel(12, 16, nodes, { size: whole(3, 4) });
  t.throws(() => tfjsToOnnx(json, bin, ['result'], { height: 6, width: 8 }), {
    instanceOf: RangeError,
    message: /^result would have 1.5 x 2 pixels$/,
  });
});

const refused: Readonly<Record<string, [RegExp, () => unknown]>> = {
  'an operator it does not know': [
    /^sorted is a TopKV2, which cannot be converted$/,
    () => {
      const { json, bin } = tfModel(HEIGHT, WIDTH, [{ name: 'sorted', op: 'TopKV2', input: ['image'] }]);
      return tfjsToOnnx(json, bin, ['sorted']);
    },
  ],
  'an activation it does not know': [
    /^result is fused with the unknown Elu$/,
    () => {
      const attr = { strides: [1, 1, 1, 1], padding: 'SAME', fused_ops: ['BiasAdd', 'Elu'] };
      const { json, bin } = tfModel(
        HEIGHT,
        WIDTH,
        [{ name: 'result', op: '_FusedConv2D', input: ['image', 'wide', 'bias'], attr }],
        { wide, bias },
      );
      return tfjsToOnnx(json, bin, ['result']);
    },
  ],
  'a dilated convolution that is padded': [
    /^result is dilated and padded$/,
    () => {
      const attr = { strides: [1, 1, 1, 1], dilations: [1, 2, 2, 1], padding: 'SAME' };
      const nodes = [{ name: 'result', op: 'Conv2D', input: ['image', 'wide'], attr }];
      const { json, bin } = tfModel(HEIGHT, WIDTH, nodes, { wide });
      return tfjsToOnnx(json, bin, ['result']);
    },
  ],
  'weights of another length': [
    /^the weights have 719 bytes, the model expects 720$/,
    () => {
      const { json, bin } = tfModel(HEIGHT, WIDTH, [{ name: 'x', op: 'Relu', input: ['image'] }], { wide });
      return tfjsToOnnx(json, bin.subarray(1), ['x']);
    },
  ],
  'an output that is not there': [
    /^the graph has no tensor there$/,
    () => {
      const { json, bin } = tfModel(HEIGHT, WIDTH, []);
      return tfjsToOnnx(json, bin, ['there']);
    },
  ],
  'another JSON file': [
    /^the file is not a TensorFlow\.js graph model/,
    () => tfjsToOnnx('{}', new Uint8Array(), ['x']),
  ],
};

for (const [title, [message, convert]] of Object.entries(refused)) {
  test(`${title} is refused by name`, (t) => {
    t.throws(convert, { instanceOf: RangeError, message });
  });
}
