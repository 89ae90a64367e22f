import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { create } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { useMatrices } from '../../src/compiler/compile.ts';
import { Network } from '../../src/compiler/network.ts';
import { buildNode, floatTensor, floatValue } from '../../src/compiler/onnx/build.ts';
import { halfWidener } from '../../src/compiler/onnx/half.ts';
import { AttributeProtoSchema, GraphProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { encodeModel } from '../../src/compiler/onnx/write.ts';
import { resizeDecoder } from '../../src/compiler/sam2/decoder.ts';
import { buildEncoder, resizePositions } from '../../src/compiler/sam2/encoder.ts';
import { readOrtWeights, type Weights } from '../../src/compiler/sam2/ortFile.ts';
import { runNetwork } from './run.ts';

/** A flatbuffer as ONNX Runtime writes it, of these float32 tensors and one of integers. */
function ortFile(tensors: readonly (readonly [name: string, dims: readonly number[], values: number[]])[]) {
  const file = Buffer.alloc(4096);
  let end = 8;
  const take = (bytes: number) => {
    const at = Math.ceil(end / 8) * 8;
    end = at + bytes;
    return at;
  };
  const refer = (field: number, to: number) => file.writeUInt32LE(to - field, field);
  /** A table with this many fields of 4 bytes, all of them set. */
  const table = (fields: readonly number[], last: number) => {
    const vtable = take(4 + 2 * (last + 1));
    const at = take(4 + 4 * (last + 1));
    file.writeUInt16LE(4 + 2 * (last + 1), vtable);
    file.writeUInt16LE(4 + 4 * (last + 1), vtable + 2);
    for (const field of fields) file.writeUInt16LE(4 + 4 * field, vtable + 4 + 2 * field);
    file.writeInt32LE(at - vtable, at);
    return { at, field: (index: number) => at + 4 + 4 * index };
  };
  const vector = (bytes: Buffer, count: number) => {
    const at = take(4 + bytes.length);
    file.writeUInt32LE(count, at);
    bytes.copy(file, at + 4);
    return at;
  };
  file.write('ORTM', 4, 'latin1');
  const session = table([1], 1);
  refer(0, session.at);
  const model = table([7], 7);
  refer(session.field(1), model.at);
  const graph = table([0], 0);
  refer(model.field(7), graph.at);
  const list = vector(Buffer.alloc(4 * (tensors.length + 1)), tensors.length + 1);
  refer(graph.field(0), list);
  for (const [i, [name, dims, values]] of [['whole', [1], [7]] as const, ...tensors].entries()) {
    const tensor = table([0, 2, 3, 4], 4);
    refer(list + 4 + 4 * i, tensor.at);
    refer(tensor.field(0), vector(Buffer.from(name), name.length));
    refer(tensor.field(2), vector(Buffer.from(BigInt64Array.from(dims.map(BigInt)).buffer), dims.length));
    file.writeInt32LE(i === 0 ? 7 : 1, tensor.field(3));
    const bytes = Buffer.from(Float32Array.from(values).buffer);
    refer(tensor.field(4), vector(bytes, bytes.length));
  }
  return new Uint8Array(file.subarray(0, end));
}

test("float32 weights are read from a file in ONNX Runtime's format, and nothing else", (t) => {
  const file = ortFile([
    ['first', [2, 3], [1, 2, 3, 4, 5, 6]],
    ['scalar', [], [0.5]],
  ]);
  const weights = readOrtWeights(file);
  t.deepEqual([...weights.keys()], ['first', 'scalar']);
  t.deepEqual(weights.get('first')?.dims, [2, 3]);
  t.deepEqual([...(weights.get('first')?.values ?? [])], [1, 2, 3, 4, 5, 6]);
  t.deepEqual([...(weights.get('scalar')?.values ?? [])], [0.5]);
});

test('damaged files in that format are refused', (t) => {
  const file = ortFile([['first', [2, 3], [1, 2, 3, 4, 5, 6]]]);
  t.throws(() => readOrtWeights(Buffer.from('not a network at all')), { instanceOf: RangeError });
  t.throws(() => readOrtWeights(new Uint8Array(3)), { instanceOf: RangeError });
  for (let length = 8; length < file.length; length += 16)
    t.throws(() => readOrtWeights(file.subarray(0, length)), { instanceOf: RangeError }, `${length} bytes`);
  t.throws(() => readOrtWeights(ortFile([['first', [2, 4], [1, 2, 3, 4, 5, 6]]])), { message: /shape/ });
});

test('position embeddings keep the pattern of every window, and their smooth part is stretched', (t) => {
  const from = 32;
  const pattern = (y: number, x: number) => ((y % 8) * 8 + (x % 8)) / 10;
  const values = Float32Array.from({ length: from * from }, (_, at) => {
    const [x, y] = [at % from, Math.floor(at / from)];
    return pattern(y, x) + (2 * Math.floor(x / 8)) / (from / 8);
  });
  const resized = resizePositions({ dims: [1, 1, from, from], values }, 16);
  const mean = (x0: number) => {
    let sum = 0;
    for (let y = 0; y < 16; y++)
      for (let x = x0; x < x0 + 8; x++) sum += (resized[y * 16 + x] ?? 0) - pattern(y, x);
    return sum / 128;
  };
  t.true(Math.abs((resized[16 * 9 + 2] ?? 0) - (resized[16 + 2] ?? 0)) < 1e-5, 'the same in the next window');
  t.true(Math.abs(mean(8) - mean(0) - 1) < 0.1, 'half of the whole rise between the two windows');
});

/** All weights of the encoder: nothing but normalisation; `changes` fills in others. */
function emptyWeights(
  changes: (name: string, dims: readonly number[], values: Float32Array) => void,
): Map<string, Weights> {
  const all = new Map<string, Weights>();
  const add = (name: string, dims: readonly number[]) => {
    const values = new Float32Array(dims.reduce((product, side) => product * side, 1));
    if (/norm\d\.weight$/.test(name)) values.fill(1);
    changes(name, dims, values);
    all.set(name, { dims, values });
  };
  const trunk = 'model.image_encoder.trunk.';
  add(`${trunk}patch_embed.proj.weight`, [96, 3, 7, 7]);
  add(`${trunk}patch_embed.proj.bias`, [96]);
  add('/image_encoder/trunk/Transpose_output_0', [1, 96, 256, 256]);
  let channels = 96;
  for (let block = 0; block < 12; block++) {
    const wider = ({ 1: 192, 3: 384, 10: 768 } as const)[block];
    const width = wider ?? channels;
    const own = `${trunk}blocks.${block}.`;
    const folded = (layer: string) => `/image_encoder/trunk/blocks.${block}/${layer}/Transpose_output_0`;
    for (const part of ['weight', 'bias']) {
      add(`${own}norm1.${part}`, [channels]);
      add(`${own}norm2.${part}`, [width]);
    }
    const layers = [
      ['attn/qkv', 'attn.qkv', channels, 3 * width],
      ['attn/proj', 'attn.proj', width, width],
      ['mlp/layers.0', 'mlp.layers.0', width, 4 * width],
      ['mlp/layers.1', 'mlp.layers.1', 4 * width, width],
      ...(wider === undefined ? [] : [['proj', 'proj', channels, width] as const]),
    ] as const;
    for (const [matrix, bias, from, to] of layers) {
      add(folded(matrix), [from, to]);
      add(`${own}${bias}.bias`, [to]);
    }
    channels = width;
  }
  for (const [i, from] of [768, 384, 192, 96].entries()) {
    add(`model.image_encoder.neck.convs.${i}.conv.weight`, [256, from, 1, 1]);
    add(`model.image_encoder.neck.convs.${i}.conv.bias`, [256]);
  }
  for (const [i, to] of [32, 64].entries()) {
    add(`model.sam_mask_decoder.conv_s${i}.weight`, [to, 256, 1, 1]);
    add(`model.sam_mask_decoder.conv_s${i}.bias`, [to]);
  }
  add('no_mem_embed', [1, 256, 1]);
  return all;
}

const SIDE = 448;

/** Channel 0 of one output for an image of one value a token (4 x 4 pixels). */
async function firstChannel(
  t: ExecutionContext,
  weights: ReadonlyMap<string, Weights>,
  output: string,
  tokens: (y: number, x: number) => number,
): Promise<{ readonly side: number; readonly at: (y: number, x: number) => number }> {
  const model = buildEncoder(weights, SIDE);
  model.graph?.output.sort((a, b) => Number(b.name === output) - Number(a.name === output));
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-sam2-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = path.join(folder, 'encoder.onnx');
  await writeFile(file, Buffer.concat([...encodeModel(model, new Set(), halfWidener())]));
  const image = new Float32Array(3 * SIDE * SIDE);
  for (let y = 0; y < SIDE; y++)
    for (let x = 0; x < SIDE; x++) image[y * SIDE + x] = tokens(Math.floor(y / 4), Math.floor(x / 4));
  const values = await runNetwork(file, image, 1);
  const side =
    { high_res_feats_0: SIDE / 4, high_res_feats_1: SIDE / 8, image_embed: SIDE / 16 }[output] ?? 0;
  return { side, at: (y, x) => values[y * side + x] ?? Number.NaN };
}

/** Weights that lead the first channel of the image through all stages. */
const passing = (name: string, dims: readonly number[], values: Float32Array) => {
  // The pixel in the middle of a patch, from the first colour.
  if (name.endsWith('patch_embed.proj.weight')) values[3 * 7 + 3] = 1;
  if (/blocks\.\d+\/proj\//.test(name) || /neck.*weight$|conv_s\d.weight$/.test(name)) values[0] = 1;
  return dims;
};

test('every value of the maps is at its place in the image, and pooling takes the largest of its tokens', async (t) => {
  const weights = emptyWeights(passing);
  const bright = (y: number, x: number) => (y * 7 + x * 13) % 61 === 0;
  const tokens = (y: number, x: number) => (bright(y, x) ? 1 : -1);
  const finest = await firstChannel(t, weights, 'high_res_feats_0', tokens);
  const embedded = await firstChannel(t, weights, 'image_embed', tokens);
  const any = (y: number, x: number, side: number) =>
    Array.from({ length: side * side }, (_, i) =>
      bright(y * side + Math.floor(i / side), x * side + (i % side)),
    ).some(Boolean);
  let [wrong, levels] = [0, new Set<string>()];
  for (let y = 0; y < finest.side; y++)
    for (let x = 0; x < finest.side; x++) if (Math.abs(finest.at(y, x) - tokens(y, x)) > 1e-4) wrong++;
  t.is(wrong, 0);
  for (let y = 0; y < embedded.side; y++)
    for (let x = 0; x < embedded.side; x++) {
      const [own, larger] = [any(y, x, 4), any(Math.floor(y / 2), Math.floor(x / 2), 8)];
      levels = levels.add(`${own} ${larger} ${embedded.at(y, x).toFixed(1)}`);
    }
  t.is(
    levels.size,
    3,
    `a value says what is bright in it, and in the token of the last stage: ${[...levels]}`,
  );
});

/** Where a value of the output changes when one token of the image does: the box of all of these. */
async function reach(t: ExecutionContext, block: number, output: string): Promise<readonly number[]> {
  let state = 1;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
  const weights = emptyWeights((name, dims, values) => {
    passing(name, dims, values);
    if (name.includes(`blocks.${block}/attn/`)) for (const i of values.keys()) values[i] = random() / 4;
  });
  const ground = (y: number, x: number) => -1 - Math.sin(y * 5 + x * 3) / 2;
  const [before, after] = [
    await firstChannel(t, weights, output, ground),
    await firstChannel(t, weights, output, (y, x) => (y === 70 && x === 21 ? 9 : ground(y, x))),
  ];
  let [x1, y1, x2, y2] = [before.side, before.side, -1, -1];
  for (let y = 0; y < before.side; y++)
    for (let x = 0; x < before.side; x++) {
      if (Math.abs(before.at(y, x) - after.at(y, x)) < 1e-6) continue;
      [x1, x2] = [Math.min(x1, x), Math.max(x2, x)];
      [y1, y2] = [Math.min(y1, y), Math.max(y2, y)];
    }
  return [x1, y1, x2, y2];
}

test('tokens see their window of 8 x 8 and later of 14 x 14, and in three blocks the whole image', async (t) => {
  t.timeout(300_000);
  t.deepEqual(await reach(t, 0, 'high_res_feats_0'), [16, 64, 23, 71]);
  t.deepEqual(await reach(t, 4, 'image_embed'), [0, 14, 13, 27]);
  t.deepEqual(await reach(t, 5, 'image_embed'), [0, 0, 27, 27]);
});

test('all products and attentions of the encoder become operators in bf16', (t) => {
  t.timeout(120_000);
  const network = new Network(buildEncoder(emptyWeights(passing), SIDE));
  useMatrices(network, 'bf16');
  const { graph, model } = network;
  const count = (type: string) => graph.node.filter(({ opType }) => opType === type).length;
  // Of each of 12 blocks: queries, keys and values together, what is behind the attention, two of the branch; four of the neck.
  t.is(count('Bf16Product'), 12 * 4 + 4);
  t.is(count('Bf16Attention'), 12);
  for (const left of ['MatMul', 'Gemm', 'BiasGelu', 'MultiHeadAttention']) t.is(count(left), 0, left);
  t.true(model.opsetImport.some(({ domain }) => domain === 'cutout'));
});

test('weights of another network, and sides with padding, are refused', (t) => {
  t.throws(() => buildEncoder(new Map(), 448), { instanceOf: RangeError, message: /position/ });
  const weights = emptyWeights(() => undefined);
  t.throws(() => buildEncoder(weights, 512), { instanceOf: RangeError, message: /multiple of 224/ });
  weights.delete('model.image_encoder.neck.convs.2.conv.bias');
  t.throws(() => buildEncoder(weights, 448), { instanceOf: RangeError, message: /convs\.2\.conv\.bias/ });
});

test("the decoder's inputs, its grid and the divisor of its points follow the encoder's input", (t) => {
  const map = (name: string, side: number) => floatValue(name, [1, 1, side, side]);
  const constant = (name: string, dims: readonly number[], values: readonly number[]) => {
    const node = buildNode('Constant', [], name);
    const value = create(AttributeProtoSchema, {
      name: 'value',
      type: 4,
      t: floatTensor('', dims, Float32Array.from(values)),
    });
    node.attribute.push(value);
    return node;
  };
  const graph = create(GraphProtoSchema, {
    input: [
      map('image_embed', 64),
      map('high_res_feats_0', 256),
      map('high_res_feats_1', 128),
      map('mask_input', 256),
    ],
    node: [
      constant('grid', [64, 64, 2], Array(64 * 64 * 2).fill(0)),
      constant('side', [], [1024]),
      constant('two', [], [2]),
      buildNode('Div', ['x', 'side'], 'share'),
      buildNode('Div', ['share', 'two'], 'half'),
    ],
  });
  resizeDecoder(graph, 672);
  const sides = graph.input.map(({ type }) =>
    type?.value.case === 'tensorType' ? type.value.value.shape?.dim.at(-1)?.value.value : undefined,
  );
  t.deepEqual(sides, [42n, 168n, 84n, 168n]);
  const grid = graph.node[0]?.attribute[0]?.t;
  t.deepEqual(grid?.dims, [42n, 42n, 2n]);
  const values = new Float32Array(Uint8Array.from(grid?.rawData ?? []).buffer);
  t.true(Math.abs((values[2] ?? 0) - (3 / 42 - 1)) < 1e-6, 'x of the second place');
  t.true(Math.abs((values[3] ?? 0) - (1 / 42 - 1)) < 1e-6, 'y of the second place');
  const [share, half] = graph.node.filter(({ opType }) => opType === 'Div');
  const divisor = graph.initializer.find(({ name }) => name === share?.input[1]);
  t.deepEqual([...new Float32Array(Uint8Array.from(divisor?.rawData ?? []).buffer)], [672]);
  t.is(half?.input[1], 'two', 'no other divisor');
  t.throws(() => resizeDecoder(create(GraphProtoSchema, {}), 672), { instanceOf: RangeError });
});
