import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import sharp, { type Sharp } from 'sharp';
import { z } from 'zod';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { allSubjectTypes, type Pixels } from '../../src/engine/types.ts';
import { findFiles, preparedFacts, specOf } from '../../src/models/locate.ts';
import { operatorsOf } from '../../src/models/precision.ts';
import { readSubjectHead } from '../../src/models/subjectHead.ts';
import { openSubjectTypes } from '../../src/server/openSubjectTypes.ts';
import { engineOptions, Networks, planFor } from '../fixtures/engineSetup.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';

interface Context {
  readonly engine: Engine;
  readonly found: boolean;
  readonly notices: string[];
}
const test = anyTest as TestFn<Context>;

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const modelsDir = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');
const photos = path.join(root, '..', 'shared', 'data');

/** For every eighth photo of heldout.csv, 13 in all: the measured number, less one. */
const TOLD_RIGHT = 10;

const networks = new Networks();
test.after.always(() => networks.remove());

async function pixelsOf(image: Sharp): Promise<Pixels> {
  const { data, info } = await image.ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  return {
    data: new Uint8Array(data.buffer, data.byteOffset, data.length),
    width: info.width,
    height: info.height,
  };
}

test.before(async (t) => {
  const engine = createEngine(loadAddon(), engineOptions({ intraOpThreads: 2, idleReleaseMs: 0 }));
  const { signal } = new AbortController();
  const notices: string[] = [];
  const observer = { notice: (text: string) => void notices.push(text), progress: () => {} };
  const { found, notice } = await openSubjectTypes(
    engine,
    { subjectTypes: 'on', modelsDir },
    { pull: false, observer, signal },
  );
  if (notice) notices.push(notice);
  t.context = { engine, found, notices };
});
test.after.always((t) => t.context.engine.close(0));

test('the head was trained on images that the detector was prepared for', (t) => {
  const json = (...file: string[]): unknown =>
    JSON.parse(readFileSync(path.join(root, 'models', ...file), 'utf8'));
  const { detectorSide } = z.object({ detectorSide: z.number() }).parse(json('types', 'head.json'));
  const size = z.object({ width: z.number(), height: z.number() });
  const { input } = z.object({ input: size }).parse(json('centernet', 'model.json'));
  t.deepEqual(input, { width: detectorSide, height: detectorSide });
});

test('the head as committed is valid and below 300 kB', async (t) => {
  const head = await readSubjectHead();
  t.is(head.firstBias.length, head.hidden || allSubjectTypes.length);
  t.true(head.threshold >= 0 && head.threshold < 1);
  t.true(readFileSync(path.join(root, 'models', 'types', 'head.json')).length < 300_000);
});

test('without the detector types are off and the operator is informed of the remedy', async (t) => {
  const { signal } = new AbortController();
  const observer = { notice: () => {}, progress: () => {} };
  const engine = { loadSubjectTypes: () => Promise.reject(new Error('nothing to load')) };
  const options = { pull: false, observer, signal };
  const missing = await openSubjectTypes(engine, { subjectTypes: 'on', modelsDir: '/nowhere' }, options);
  t.false(missing.found);
  t.regex(missing.notice ?? '', /X-Type is always other for type=auto.*cutout models pull centernet/);
  t.deepEqual(await openSubjectTypes(engine, { subjectTypes: 'off', modelsDir: '/nowhere' }, options), {
    found: false,
  });
});

/** Undefined, with a message in the log, if the photos or a network are missing. */
async function networkAndPhotos(t: ExecutionContext<Context>) {
  // `npm test` prepares it in the form that this processor runs best.
  const [operators] = operatorsOf('int8', loadAddon().versions().operators);
  for (const form of ['int8-operators', 'int8', 'fp32'] as const) {
    const place = { modelsDir, device: 'cpu', form } as const;
    const { entry, files } = await findFiles('isnet', place);
    const network = specOf(entry.manifest, files.prepared);
    if (!t.context.found || !existsSync(photos) || !existsSync(network.path)) continue;
    const { sizeStep: step, operators: own } = await preparedFacts('isnet', place);
    return { network: { ...network, ...(own && operators !== undefined && { operators }) }, step };
  }
  const missing = existsSync(photos)
    ? `the network isnet is not in ${modelsDir}`
    : '../shared/data is not here';
  sayLeftOut(t, t.context.notices.join(' ') || missing);
  return undefined;
}

test('a drawing is a graphic, on transparency and on white', async (t) => {
  if (!t.context.found) {
    sayLeftOut(t, t.context.notices.join(' '));
    return;
  }
  const { engine } = t.context;
  await engine.load(networks.spec('everything', { gain: 0, bias: 20 }));
  const drawing = Buffer.from(
    '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="400"><circle cx="200" cy="200" r="150" fill="#e33"/>' +
      '<path d="M120 220 L180 280 L290 140" stroke="#fff" stroke-width="36" fill="none"/></svg>',
  );
  for (const image of [sharp(drawing), sharp(drawing).flatten({ background: '#fff' })]) {
    const pixels = await pixelsOf(image);
    const { subject } = await engine.matte(pixels, { ...planFor('everything', pixels), subject: true });
    t.is(subject?.type, 'graphic');
  }
});

test.serial(
  'photos of sources outside the training set are classified as well as when the head was trained',
  async (t) => {
    t.timeout(180_000);
    const found = await networkAndPhotos(t);
    if (!found) return;
    const { network, step } = found;
    const { engine } = t.context;
    // A quarter of the usual pixels if the network supports it, as in training: the matte only weights the features.
    const { width, height } = step > 0 && 512 % step === 0 ? { width: 512, height: 512 } : network;
    await engine.load({ ...network, width, height });
    const [, ...labelled] = readFileSync(path.join(root, 'tools/subject-types/heldout.csv'), 'utf8')
      .trim()
      .split('\n');
    const asked = labelled.filter((_, at) => at % 8 === 0);
    const wrong: string[] = [];
    for (const row of asked) {
      const [file = '', type] = row.split(',');
      const pixels = await pixelsOf(
        sharp(path.join(photos, file))
          .autoOrient()
          .resize(512, 512, { fit: 'inside', withoutEnlargement: true }),
      );
      const { subject } = await engine.matte(pixels, { ...planFor('isnet', pixels), subject: true });
      if (subject?.type !== type) wrong.push(`${file} is ${type}, classified as ${subject?.type}`);
    }
    t.log(`${asked.length - wrong.length} of ${asked.length}`, ...wrong);
    t.is(asked.length, 13);
    t.true(asked.length - wrong.length >= TOLD_RIGHT, wrong.join('; '));
  },
);

test("photos are classified correctly under the network's matte", async (t) => {
  t.timeout(180_000);
  const known = [
    ['rembg/examples/car-2.jpg', 'car'],
    ['jizhizili_peers/p3m_demo/p_bd6af989.jpg', 'person'],
    ['u2net/test_images/0002-01.jpg', 'person'],
    ['jizhizili_peers/gfm_am2k/sample3.jpg', 'animal'],
    ['u2net/test_images/sailboat3.jpg', 'transportation'],
  ] as const;
  const found = await networkAndPhotos(t);
  if (!found) return;
  const { engine } = t.context;
  await engine.load(found.network);
  for (const [file, type] of known) {
    const pixels = await pixelsOf(
      sharp(path.join(photos, file)).autoOrient().resize(512, 512, { fit: 'inside' }),
    );
    const { subject } = await engine.matte(pixels, { ...planFor('isnet', pixels), subject: true });
    t.is(subject?.type, type, `${file}: ${JSON.stringify(subject?.probabilities)}`);
  }
});
