import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { compileOnnx } from '../../src/compiler/compile.ts';
import { INT8 } from '../../src/compiler/onnx/graph.ts';
import { type GraphProto, ModelProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { quantiseConv } from '../../src/compiler/quantise/arithmetic.ts';
import { type QuantisationTable, scalesOf } from '../../src/compiler/quantise/table.ts';
import { networkFiles } from '../../src/models/layout.ts';
import { pullNetwork } from '../../src/models/pull.ts';
import { verifyPrepared } from '../../src/models/verify.ts';
import { sha256, workplace } from '../fixtures/networks.ts';
import { SIDE } from '../fixtures/onnx.ts';
import { random } from '../fixtures/random.ts';
import { UNET_TENSORS, unet, unetFile } from '../fixtures/unet.ts';
import { largestDifference, runNetwork } from './run.ts';

const bytesOf = (pieces: Iterable<Uint8Array>) => new Uint8Array(Buffer.concat([...pieces]));

function graphOf(file: Uint8Array): GraphProto {
  const { graph } = fromBinary(ModelProtoSchema, file);
  if (!graph) throw new Error('no graph');
  return graph;
}

async function run(t: ExecutionContext, file: Uint8Array, inputs: Float32Array): Promise<Float32Array> {
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-quantise-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const network = path.join(folder, 'network.onnx');
  await writeFile(network, file);
  return runNetwork(network, inputs, 1, { height: SIDE, width: SIDE });
}

const IMAGES = 4;
const inputs = Float32Array.from({ length: IMAGES * 3 * SIDE * SIDE }, (_, i) => {
  // 8-bit values, as in an image.
  const value = (Math.imul(i + 1, 2654435761) >>> 24) & 255;
  return (value - 128) / 256;
});

/** Largest magnitude of each channel of a tensor of the float network. */
async function ranges(t: ExecutionContext, tensor: string): Promise<number[]> {
  const values = tensor === 'image' ? inputs : await run(t, unetFile(tensor), inputs);
  const channels = tensor === 'image' ? 3 : tensor === 'logit' ? 1 : 4;
  const plane = values.length / IMAGES / channels;
  return Array.from({ length: channels }, (_, c) =>
    values.reduce(
      (most, v, at) => (Math.floor(at / plane) % channels === c ? Math.max(most, Math.abs(v)) : most),
      0,
    ),
  );
}

/** What calibration would find: maxima, with per-channel factors where the graph allows any. */
async function tableFor(t: ExecutionContext): Promise<QuantisationTable> {
  const found = Object.fromEntries(
    await Promise.all(UNET_TENSORS.map(async (name) => [name, await ranges(t, name)] as const)),
  );
  const of = (name: string) => found[name] ?? [];
  const most = (name: string) => Math.max(...of(name));
  const exponents = (name: string, scale: number, levels: number) =>
    of(name).map((range) => Math.ceil(8 * Math.log2(range / levels / scale)));
  // r1, r3 and their sum are added, so their channels have the same factors.
  const profile = exponents('sum', most('sum') / 255, 255);
  const added = (name: string) => ({ scale: most(name) / 255, zeroPoint: 0 });
  const within = (name: string) => {
    const scale = Math.max(...of(name).map((range, c) => range / 255 / 2 ** ((profile[c] ?? 0) / 8)));
    return { ...added(name), scale, channels: profile };
  };
  return {
    sourceSha256: '0'.repeat(64),
    float: [],
    tensors: {
      image: { scale: 1 / 256, zeroPoint: 128 },
      stem: {
        scale: most('stem') / 127,
        zeroPoint: 128,
        channels: exponents('stem', most('stem') / 127, 127),
      },
      r1: within('r1'),
      r2: { ...added('r2'), channels: exponents('r2', most('r2') / 255, 255) },
      r3: within('r3'),
      sum: within('sum'),
      logit: {
        scale: (2 * most('logit')) / (4 * 255),
        zeroPoint: 0,
        steps: { count: 4, low: -most('logit') },
      },
    },
    bias: { 'Conv/c2': [15, 15, 15, 15] },
  };
}

test('convolutions with per-channel scales give the same sums', (t) => {
  const next = random(5);
  const [outputs, channels, taps] = [5, 6, 9];
  const uniform = (n: number, size: number) =>
    Float32Array.from({ length: n }, () => (next() - 0.5) * 2 * size);
  const weights = uniform(outputs * channels * taps, 0.3);
  const bias = uniform(outputs, 2);
  const inputScales = Float64Array.from({ length: channels }, (_, c) => 0.01 * 2 ** c);
  const outputScales = Float64Array.from({ length: outputs }, (_, o) => 0.02 * 3 ** o);
  const inputScale = 0.04;
  const outputScale = 0.5;
  const made = quantiseConv(weights, bias, inputScales, outputScales, inputScale, outputScale);
  const steps = Array.from({ length: channels * taps }, () => Math.floor(next() * 256));
  for (let o = 0; o < outputs; o++) {
    let [exact, sum, error] = [bias[o] ?? 0, made.bias[o] ?? 0, 0];
    const step = made.weightScales[o] ?? 0;
    const back = (outputScales[o] ?? 0) / outputScale;
    for (let i = 0; i < steps.length; i++) {
      const scale = inputScales[Math.floor(i / taps)] ?? 0;
      exact += (weights[o * steps.length + i] ?? 0) * scale * (steps[i] ?? 0);
      sum += (made.weights[o * steps.length + i] ?? 0) * (steps[i] ?? 0);
      error += (steps[i] ?? 0) * inputScale * step * back;
    }
    const found = sum * inputScale * step * back;
    // Each weight is off by half a step at most, except the few that are clipped.
    t.true(Math.abs(found - exact) < error, `${o}: ${found} for ${exact}`);
    t.true(made.weights.subarray(o * steps.length, (o + 1) * steps.length).some((w) => Math.abs(w) === 127));
  }
});

test('the scales of channels are eighths of octaves, the same with every version of Node.js', (t) => {
  const channels = Array.from({ length: 129 }, (_, at) => at - 64);
  const scales = scalesOf({ scale: 3, zeroPoint: 0, channels }, channels.length);
  for (const [at, exponent] of channels.entries()) {
    const wanted = 3 * 2 ** (exponent / 8);
    t.true(Math.abs((scales[at] ?? 0) / wanted - 1) < 2 ** -51, `${exponent}`);
    // Exact in whole octaves and halves of them.
    if (exponent % 8 === 0) t.is(scales[at], wanted);
    if (exponent === 4) t.is(scales[at], 3 * Math.SQRT2);
  }
  t.throws(() => scalesOf({ scale: 3, zeroPoint: 0, channels }, 4), { instanceOf: RangeError });
});

test('a channel without weights keeps its bias', (t) => {
  const made = quantiseConv(
    new Float32Array(9),
    Float32Array.of(3),
    Float64Array.of(0.1),
    Float64Array.of(0.05),
    0.1,
    0.05,
  );
  t.deepEqual([...made.weights], new Array(9).fill(0));
  t.true(Math.abs((made.bias[0] ?? 0) * 0.1 * (made.weightScales[0] ?? 0) - 3) < 1e-6);
});

test("an 8-bit network gives the float network's result, within its steps", async (t) => {
  t.timeout(120_000);
  const table = await tableFor(t);
  const float = await run(t, unetFile(), inputs);
  const made = compileOnnx(unetFile(), 'sum', 'int8', table);
  t.is(made.precision, 'int8');
  t.deepEqual(made.outputs, ['alpha', 'sum']);
  t.true(made.freeBatch);
  const file = bytesOf(made.pieces);
  const found = await run(t, file, inputs);
  const worst = largestDifference(float, found);
  t.log(`largest difference of alpha ${worst.toFixed(4)}`);
  t.true(worst < 0.02);
  t.true(worst > 0);
  // The additional output has its own units again.
  const sum = bytesOf(
    compileOnnx(unetFile('sum'), undefined, 'int8', { ...table, tensors: without(table, 'logit') }).pieces,
  );
  const [a, b] = [await run(t, unetFile('sum'), inputs), await run(t, sum, inputs)];
  t.true(largestDifference(a, b) < 0.03 * Math.max(...a));
  // A batch gives the results of its images.
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-quantise-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const network = path.join(folder, 'network.onnx');
  await writeFile(network, file);
  t.true(
    largestDifference(await runNetwork(network, inputs, IMAGES, { height: SIDE, width: SIDE }), found) < 1e-6,
  );
});

const without = ({ tensors }: QuantisationTable, name: string) =>
  Object.fromEntries(Object.entries(tensors).filter(([each]) => each !== name));

test('weights are stored as int8, each convolution is between quantised values, and nothing else is dequantised', async (t) => {
  const table = await tableFor(t);
  const graph = graphOf(bytesOf(compileOnnx(unetFile(), undefined, 'int8', table).pieces));
  const kinds = graph.node.map((node) => node.opType);
  t.false(kinds.includes('Relu'));
  t.is(kinds.filter((kind) => kind === 'Conv').length, 5);
  // The image's three channels are padded to four.
  t.is(kinds.filter((kind) => kind === 'Pad').length, 1);
  // Five of weights, five of bias, five of inputs, two of the addition, one of the steps; none around pooling,
  // enlarging and concatenation.
  t.is(kinds.filter((kind) => kind === 'DequantizeLinear').length, 18);
  t.is(kinds.filter((kind) => kind === 'QuantizeLinear').length, 7);
  const stored = graph.initializer.filter((tensor) => tensor.dataType === INT8 && tensor.dims.length === 4);
  t.deepEqual(stored.map((tensor) => tensor.dims.map(Number)).sort(), [
    [4, 4, 3, 3],
    [4, 4, 3, 3],
    [4, 4, 3, 3],
    [4, 4, 3, 3],
    [4, 8, 3, 3],
  ]);
});

test('convolutions named in the table stay in floats, and so do the maps between them', async (t) => {
  t.timeout(120_000);
  const table = await tableFor(t);
  const float = await run(t, unetFile(), inputs);
  const made = (names: readonly string[]) =>
    bytesOf(compileOnnx(unetFile(), undefined, 'int8', { ...table, float: [...names], bias: {} }).pieces);
  for (const names of [['Conv/c3'], ['Conv/c2'], ['Conv/c1', 'Conv/c3'], ['Conv/c1', 'Conv/c2', 'Conv/c3']]) {
    const file = made(names);
    const kept = graphOf(file).initializer.filter(({ name }) => /^w\d$/.test(name));
    t.is(kept.length, names.length);
    t.true(largestDifference(float, await run(t, file, inputs)) < 0.02, names.join());
  }
  // A float map that feeds an 8-bit convolution is quantised once, before enlarging and concatenation.
  const { node: nodes } = graphOf(made(['Conv/c2']));
  const [resize] = nodes.filter(({ opType }) => opType === 'Resize');
  const from = nodes.find(({ output }) => output[0] === resize?.input[0]);
  t.is(from?.opType, 'QuantizeLinear');
  t.is(from?.input[0], 'r2');
  // The sum of two float maps is a float addition.
  const { node: summed } = graphOf(made(['Conv/c1', 'Conv/c3']));
  t.deepEqual(summed.find(({ opType }) => opType === 'Add')?.input, ['r3', 'r1']);
});

test('a network of an older operator set is raised to 13 where its operators mean the same, else refused', async (t) => {
  const table = await tableFor(t);
  const older = (change: (graph: GraphProto) => void = () => {}) => {
    const model = unet();
    for (const each of model.opsetImport) each.version = 11n;
    if (model.graph) change(model.graph);
    return toBinary(ModelProtoSchema, model);
  };
  const made = bytesOf(compileOnnx(older(), undefined, 'int8', table).pieces);
  t.deepEqual(
    fromBinary(ModelProtoSchema, made).opsetImport.map(({ version }) => version),
    [13n],
  );
  const newer = bytesOf(compileOnnx(unetFile(), undefined, 'int8', table).pieces);
  t.is(largestDifference(await run(t, made, inputs), await run(t, newer, inputs)), 0);
  // Softmax is over another axis there.
  const softmax = older((graph) => {
    for (const each of graph.node) if (each.opType === 'Sigmoid') each.opType = 'Softmax';
  });
  t.throws(() => compileOnnx(softmax, undefined, 'int8', table), {
    message: 'it is written in an operator set older than 13, which 8 bits need',
  });
});

test('a table that does not fit the network is refused with a sentence that names the mismatch', async (t) => {
  const table = await tableFor(t);
  const entry = table.tensors['r1'];
  if (!entry) throw new Error('no r1');
  const cases: [QuantisationTable, RegExp][] = [
    [{ ...table, float: ['Conv/none'] }, /names Conv\/none, which the network does not have/],
    [{ ...table, tensors: without(table, 'r2') }, /no scale for the tensor r2/],
    [{ ...table, tensors: { ...table.tensors, r9: entry } }, /tensor r9 is none of the network's/],
    [
      { ...table, tensors: { ...table.tensors, r1: { ...entry, channels: [0, 1] } } },
      /2 channels where the network has 4/,
    ],
    [{ ...table, tensors: { ...table.tensors, r1: { ...entry, zeroPoint: 3 } } }, /r1 comes from a ReLU/],
    [
      { ...table, tensors: { ...table.tensors, r1: { ...entry, channels: [9, 0, 0, 0] } } },
      /that sum adds are scaled differently/,
    ],
    [{ ...table, bias: { 'Conv/c1': [1] } }, /1 shifts for the 4 channels of Conv\/c1/],
  ];
  for (const [wrong, message] of cases) {
    t.throws(() => compileOnnx(unetFile(), undefined, 'int8', wrong), { instanceOf: RangeError, message });
  }
  t.throws(() => compileOnnx(unetFile(), undefined, 'int8'), { message: /no table of 8-bit scales/ });
});

test('a pull applies the table; a changed, a wrong and a missing table are detected', async (t) => {
  const place = await workplace(t);
  const file = unetFile();
  const entry = await place.entry({ kind: 'file', path: 'published.onnx' }, Buffer.from(file), {
    int8: 'int8.json',
    features: 'sum',
  });
  const table = { ...(await tableFor(t)), sourceSha256: sha256(file) };
  const tableFile = path.join(entry.folder, 'int8.json');
  const options = { ...place.options(), form: 'int8' as const };
  await t.throwsAsync(pullNetwork(entry, options), {
    code: 'MODEL_UNSUPPORTED',
    message: /int8\.json cannot be read/,
  });

  await writeFile(tableFile, JSON.stringify(table));
  const record = await pullNetwork(entry, options);
  const files = networkFiles(place.modelsDir, entry.manifest, 'int8');
  t.is(path.basename(files.prepared), 'prepared.int8.onnx');
  t.is(record.precision, 'int8');
  t.is(record.tableSha256, sha256(await readFile(tableFile)));
  t.is(await verifyPrepared(files, entry, 'int8'), 'ok');

  await writeFile(tableFile, JSON.stringify({ ...table, bias: {} }));
  t.is(await verifyPrepared(files, entry, 'int8'), 'outdated');
  const again = await pullNetwork(entry, options);
  t.not(again.sha256, record.sha256);
  t.is(await verifyPrepared(files, entry, 'int8'), 'ok');

  const refused: [string, RegExp][] = [
    [
      JSON.stringify({ ...table, sourceSha256: 'f'.repeat(64) }),
      /made for another file: sha256 f{64}, the manifest has/,
    ],
    [JSON.stringify({ ...table, tensors: { r1: { scale: -1, zeroPoint: 0 } } }), /is not valid:[\s\S]*scale/],
    ['{"tensors":', /is not valid JSON/],
  ];
  for (const [text, message] of refused) {
    await writeFile(tableFile, text);
    await t.throwsAsync(pullNetwork(entry, options), { code: 'MODEL_UNSUPPORTED', message });
  }
});
