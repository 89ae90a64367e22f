import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { LazySelector } from '../../src/engine/selector.ts';
import type { Pixels, SelectPlan } from '../../src/engine/types.ts';
import { engineOptions } from '../fixtures/engineSetup.ts';
import { EMBEDDING_BYTES, MASK_SIDE, writeSelector } from '../fixtures/selectorNetworks.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'cutout-selector-'));
test.after.always(() => rmSync(folder, { recursive: true, force: true }));
const spec = writeSelector(folder);

function start(t: ExecutionContext): Engine {
  const engine = createEngine(loadAddon(), engineOptions());
  t.teardown(() => engine.close(0));
  return engine;
}

/** Red on the left, green on top, blue on the right; elsewhere black. */
function colours(width: number, height: number): Pixels {
  const data = new Uint8Array(width * height * 4);
  for (let i = 0; i < width * height; i++) {
    const [x, y] = [i % width, Math.floor(i / width)];
    data.set([x < width / 2 ? 255 : 0, y < height / 2 ? 255 : 0, x < width / 2 ? 0 : 255, 255], i * 4);
  }
  return { data, width, height };
}

const at = (x: number, y: number, include = true) => ({ x, y, include });
/** Twice the same point, because a single one is asked again with a box. */
const twice = (x: number, y: number) => [at(x, y), at(x, y)];

test('the mask is that of the candidate with the best predicted overlap', async (t) => {
  const engine = start(t);
  const info = await engine.loadSelector(spec);
  t.is(info.embeddingBytes, EMBEDDING_BYTES);
  const image = colours(100, 80);
  const before = Buffer.from(image.data);
  const { data: embedding } = await engine.embed(image);
  t.is(embedding.length, EMBEDDING_BYTES);
  t.deepEqual(Buffer.from(image.data), before, 'the image is only read');
  const masked = async (plan: Omit<SelectPlan, 'embedding'>) => {
    const { mask, score } = await engine.select({ embedding, ...plan });
    t.deepEqual([mask.width, mask.height, mask.data.length], [MASK_SIDE, MASK_SIDE, MASK_SIDE ** 2]);
    const inMask = (x: number, y: number) => (mask.data[y * MASK_SIDE + x] ?? 0) > 250;
    return { score, corners: [inMask(0, 0), inMask(15, 0), inMask(0, 15), inMask(15, 15)] };
  };
  const red = await masked({ points: twice(1, 0) });
  t.deepEqual(red.corners, [true, false, true, false]);
  t.true(
    Math.abs(red.score - 2 / 3) < 1e-6,
    'the mean of x of the points and of the point in place of a box',
  );
  t.deepEqual((await masked({ points: twice(0, 1) })).corners, [true, true, false, false]);
  const box = { x1: 0, y1: 0, x2: 0.5, y2: 0.5 };
  const blue = await masked({ points: [], box });
  t.deepEqual(blue.corners, [false, true, false, true]);
  t.true(Math.abs(blue.score - 2.5 / 3) < 1e-6, 'labels 2 and 3 alone');
  t.true(
    Math.abs((await masked({ points: [at(0, 0, false)], box })).score - 5 / 9) < 1e-6,
    'a point that is not in the subject has label 0',
  );
});

test('of candidates that are nearly as likely, the largest counts', async (t) => {
  const engine = start(t);
  await engine.loadSelector(spec);
  const image = colours(64, 64);
  // Red everywhere, green above.
  for (let i = 0; i < image.data.length; i += 4) image.data[i] = 255;
  const { data: embedding } = await engine.embed(image);
  const below = async (x: number) => {
    const { mask } = await engine.select({ embedding, points: twice(x, 1) });
    return (mask.data.at(-1) ?? 0) > 250;
  };
  // The mean is of the two points and of the one in place of a box.
  t.true(await below(0.94), 'red, 0.04 behind green');
  t.false(await below(0.91), 'green, 0.06 before red');
});

test('one point is asked again with the box around each of its candidates', async (t) => {
  const engine = start(t);
  await engine.loadSelector(spec);
  const scored = async (red: (x: number) => boolean, point: SelectPlan['points']) => {
    const image = colours(64, 64);
    for (let i = 0; i < image.data.length; i += 4) {
      image.data.set([red((i / 4) % 64) ? 255 : 0, 0, 0], i);
    }
    const { data: embedding } = await engine.embed(image);
    return (await engine.select({ embedding, points: point })).score;
  };
  const near = (value: number, wanted: number) => t.true(Math.abs(value - wanted) < 1e-5, `${value}`);
  // The mean of the point and the corners of the box, of red, which is all there is.
  near(await scored(() => true, [at(0.2, 0.5)]), (0.2 + 0 + 1) / 3);
  near(await scored((x) => x >= 60, [at(1, 0.5)]), (1 + 15 / 16 + 1) / 3);
  near(await scored(() => false, [at(0.5, 0.75)]), 0.375);
  near(await scored(() => true, twice(0.5, 0.75)), 0.5);
});

test('of the answers to one point a larger one counts, unless it is much less likely', async (t) => {
  const engine = start(t);
  await engine.loadSelector(spec);
  const image = colours(64, 64);
  // Red everywhere, green above.
  for (let i = 0; i < image.data.length; i += 4) image.data.set([255, image.data[i + 1] ?? 0, 0], i);
  const { data: embedding } = await engine.embed(image);
  const isRed = async (x: number) => {
    const { mask } = await engine.select({ embedding, points: [at(x, 1)] });
    return (mask.data.at(-1) ?? 0) > 250;
  };
  // Red has x / 3 + 1 / 3, and twice the area of green, which has 2 / 3: worth 0.3 ln 2 = 0.208.
  t.false(await isRed(0.36));
  t.true(await isRed(0.39));
});

test('an undecided value of the mask is between black and white', async (t) => {
  const engine = start(t);
  await engine.loadSelector(writeSelector(mkdtempSync(path.join(folder, 'soft-')), { gain: 1 }));
  const { data: embedding } = await engine.embed(colours(64, 64));
  const { mask } = await engine.select({ embedding, points: twice(1, 0) });
  t.deepEqual([mask.data[0], mask.data[15]], [186, 69]);
});

test('values that are not finite are an error of the network', async (t) => {
  const engine = start(t);
  await engine.loadSelector(
    writeSelector(mkdtempSync(path.join(folder, 'nan-')), { gain: Number.POSITIVE_INFINITY }),
  );
  const { data: embedding } = await engine.embed(colours(64, 64));
  await t.throwsAsync(engine.select({ embedding, points: [at(1, 0)] }), {
    code: 'ENGINE_MODEL',
    message: /not finite/,
  });
  await engine.loadSelector(writeSelector(mkdtempSync(path.join(folder, 'finite-')), { gain: 10 }));
  t.is((await engine.select({ embedding, points: [at(1, 0)] })).mask.width, MASK_SIDE);
});

test('hostile calls are refused', async (t) => {
  const engine = start(t);
  const image = colours(64, 64);
  await t.throwsAsync(engine.embed(image), { code: 'ENGINE_MODEL', message: /No selector/ });
  await engine.loadSelector(spec);
  const { data: embedding } = await engine.embed(image);
  const points = [at(0.5, 0.5)];
  await t.throwsAsync(engine.select({ embedding: new Uint8Array(EMBEDDING_BYTES + 4), points }), {
    code: 'ENGINE_BAD_INPUT',
  });
  for (const [wrong, type] of [
    [{ embedding: new Uint8Array(7), points }, RangeError],
    [{ embedding, points: [at(1.01, 0)] }, RangeError],
    [{ embedding, points: [at(Number.NaN, 0)] }, RangeError],
    [{ embedding, points: Array(1025).fill(at(0, 0)) }, TypeError],
    [{ embedding, points, box: { x1: -1, y1: 0, x2: 1, y2: 1 } }, RangeError],
  ] as const) {
    await t.throwsAsync(engine.select(wrong), { instanceOf: type });
  }
  for (const broken of [
    { ...spec, encoder: spec.decoder },
    { ...spec, decoder: spec.encoder },
    { ...spec, width: 32 },
    { ...spec, decoder: path.join(folder, 'nothing.onnx') },
  ]) {
    await t.throwsAsync(engine.loadSelector(broken), { code: 'ENGINE_MODEL' });
  }
  const torn = path.join(folder, 'torn.ort');
  writeFileSync(torn, 'xxxxORTM and then nothing that is a flatbuffer');
  await t.throwsAsync(engine.loadSelector({ ...spec, encoder: torn }), { code: 'ENGINE_MODEL' });
  t.is((await engine.select({ embedding, points })).mask.width, MASK_SIDE, 'the loaded pair is still there');
});

test('a job that is cancelled before it starts ends at once', async (t) => {
  const engine = start(t);
  await engine.loadSelector(spec);
  const stopping = new AbortController();
  const image = colours(2000, 2000);
  const jobs = Array.from({ length: 4 }, () => engine.embed(image, stopping));
  stopping.abort();
  const ended = await Promise.allSettled(jobs);
  t.true(ended.some(({ status }) => status === 'rejected'));
  await t.throwsAsync(engine.embed(colours(8, 8), { signal: AbortSignal.abort() }), {
    code: 'ENGINE_CANCELLED',
  });
});

test('the networks are loaded once, at their first use, and again after they were unloaded', async (t) => {
  const engine = start(t);
  let found = 0;
  let failing = true;
  const selector = new LazySelector(engine, {
    installed: async () => false,
    mayDownload: true,
    resolveSpec: async () => {
      found += 1;
      if (failing) throw new Error('no network');
      return spec;
    },
  });
  t.true(await selector.available());
  t.false(await selector.installed());
  await t.throwsAsync(selector.embed(colours(8, 8)), { message: 'no network' });
  failing = false;
  const [one, two] = await Promise.all([selector.embed(colours(64, 64)), selector.embed(colours(64, 64))]);
  t.deepEqual(one.data, two.data);
  t.is(found, 2);
  t.true(await selector.installed());
  selector.onUnloaded();
  await engine.unload();
  await selector.select({ embedding: one.data, points: [at(1, 0)] });
  t.is(found, 3);
  await t.throwsAsync(selector.embed(colours(8, 8), { signal: AbortSignal.abort(new Error('left')) }), {
    message: /left|cancelled/,
  });
});
