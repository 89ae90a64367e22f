import { appendFile, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Provider } from '../../src/engine/types.ts';
import { ensureNetwork } from '../../src/models/ensure.ts';
import { preparedFacts, SUBJECT_DETECTOR } from '../../src/models/locate.ts';
import { pullNetwork } from '../../src/models/pull.ts';
import { offline, READY, readPrepared, type Workplace, workplace } from '../fixtures/networks.ts';

/** A models folder where the tiny network is pulled and prepared. */
async function pulled(t: ExecutionContext): Promise<{ place: Workplace; file: (name: string) => string }> {
  const place = await workplace(t);
  await pullNetwork(await place.entry({ kind: 'file', path: 'published.onnx' }), place.options());
  place.recorder.notices.length = 0;
  place.recorder.steps.length = 0;
  return { place, file: (name) => path.join(place.modelsDir, 'tiny', name) };
}

const ensure = ({ modelsDir, catalogueDir, recorder }: Workplace, pull: boolean, device: Provider = 'cpu') =>
  ensureNetwork('tiny', { modelsDir, catalogueDir, pull, device, observer: recorder, dependencies: offline });

test('a valid network is described to the engine without being changed', async (t) => {
  const { place, file } = await pulled(t);
  t.deepEqual(await ensure(place, false), {
    name: 'tiny',
    path: file('prepared.onnx'),
    width: 32,
    height: 32,
    mean: [128, 128, 128],
    std: [256, 256, 256],
    output: 'probability',
    trainedOn: 'masks',
  });
  t.deepEqual(place.recorder.steps, []);
});

test('a detector cannot be used for mattes, nor a matte network as detector', async (t) => {
  const { place } = await pulled(t);
  const { modelsDir, recorder } = place;
  const options = { modelsDir, pull: false, device: 'cpu', observer: recorder } as const;
  await t.throwsAsync(ensureNetwork(SUBJECT_DETECTOR, options), {
    code: 'MODEL_UNSUPPORTED',
    message: /determines subject types and makes no matte/,
  });
  await t.throwsAsync(ensureNetwork('isnet', { ...options, role: 'detector' }), {
    code: 'MODEL_UNSUPPORTED',
    message: /makes mattes/,
  });
});

test('a network that was not pulled is an error, or is pulled if allowed', async (t) => {
  const place = await workplace(t);
  await place.entry({ kind: 'file', path: 'published.onnx' });
  await t.throwsAsync(ensure(place, false), {
    code: 'MODEL_MISSING',
    message: `The network tiny is not in ${place.modelsDir}. Run \`cutout models pull tiny\`.`,
  });
  t.deepEqual(await place.files(), []);
  await ensure(place, true);
  t.deepEqual(await place.files(), READY);
});

test('a damaged prepared file is an error, or is repaired if allowed', async (t) => {
  const { place, file } = await pulled(t);
  const sound = await readPrepared(place.modelsDir);
  const damaged = Buffer.from(sound);
  damaged[damaged.length >> 1] = (damaged[damaged.length >> 1] ?? 0) ^ 4;
  await writeFile(file('prepared.onnx'), damaged);
  await t.throwsAsync(ensure(place, false), {
    code: 'MODEL_DAMAGED',
    message: `The network file ${file('prepared.onnx')} is damaged. Run \`cutout models pull tiny\`.`,
  });
  await ensure(place, true);
  t.deepEqual(await readPrepared(place.modelsDir), sound);
  t.deepEqual(place.recorder.notices, [`${file('prepared.onnx')} is damaged and is prepared again.`]);
});

test('a network prepared by another version is prepared again', async (t) => {
  const { place, file } = await pulled(t);
  const record = await readFile(file('prepared.json'), 'utf8');
  await writeFile(file('prepared.json'), record.replace(/"preparer": \d+/, '"preparer": 0'));
  await writeFile(file('prepared.onnx'), 'older');
  await ensure(place, false);
  t.is(await readFile(file('prepared.json'), 'utf8'), record);
  t.deepEqual(place.recorder.phases(), ['prepare']);
});

test('a preparation that was interrupted before its record is repeated', async (t) => {
  const { place, file } = await pulled(t);
  await rm(file('prepared.json'));
  await ensure(place, false);
  t.deepEqual(await place.files(), READY);
});

test('an unreadable record is written again', async (t) => {
  const { place, file } = await pulled(t);
  await writeFile(file('prepared.json'), '{"preparer":');
  await ensure(place, false);
  t.deepEqual(await place.files(), READY);
});

test('a damaged source cannot be prepared, and is fetched again if allowed', async (t) => {
  const { place, file } = await pulled(t);
  await rm(file('prepared.json'));
  await appendFile(file('source.onnx'), 'x');
  await t.throwsAsync(ensure(place, false), {
    code: 'MODEL_DAMAGED',
    message: /source\.onnx is damaged: its sha256 is/,
  });
  await ensure(place, true);
  t.deepEqual(await place.files(), READY);
  t.true(place.recorder.notices.includes(`${file('source.onnx')} is damaged and is downloaded again.`));
});

test('a GPU gets a separate file with 16-bit floats', async (t) => {
  const { place, file } = await pulled(t);
  const spec = await ensure(place, false, 'tensorrt');
  t.is(spec.path, file('prepared.tensorrt.onnx'));
  const half = await readFile(spec.path);
  t.true(half.length < (await readPrepared(place.modelsDir)).length);
  t.deepEqual(await place.files(), ['prepared.tensorrt.json', 'prepared.tensorrt.onnx', ...READY].sort());
});

test('a GPU with CUDA gets the network as it was published where it cannot be a program', async (t) => {
  const { place, file } = await pulled(t);
  const spec = await ensure(place, false, 'cuda');
  t.is(spec.path, file('prepared.gpu'));
  t.false((await preparedFacts(spec.name, { ...place, device: 'cuda' })).operators);
  t.deepEqual(await readFile(spec.path), await readFile((await ensure(place, false, 'tensorrt')).path));
});
