import test, { type ExecutionContext } from 'ava';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { allSubjectTypes, type Pixels, type SubjectHead } from '../../src/engine/types.ts';
import { engineOptions, halves, Networks, planFor } from '../fixtures/engineSetup.ts';

const networks = new Networks();
test.after.always(() => networks.remove());

/** Of the image, and of a region of it. */
const STATISTICS = 6;
const REGION = 20;
/** One class map (the brighter, the likelier) and three feature maps (the image itself). */
const FEATURES = 1 + 3 + STATISTICS + 2 * REGION;
/** Layout: the class and three maps, both under the matte, then the statistics. */
const UNDER = 0;
const RED = 1;
const WHOLE = 4;
const INSIDE = WHOLE + STATISTICS;
const OUTSIDE = INSIDE + REGION;

const plain = { mean: [0, 0, 0], std: [1, 1, 1], output: 'probability' } as const;

const detector = networks.spec(
  'detector',
  { gain: 0.1, bias: -12.75, sigmoid: true, secondOutput: true },
  plain,
);
const white = networks.spec('white');

/** Returns `car` with more confidence the more of the first class is under the matte, and `other` without any. */
function head(changes: Partial<SubjectHead> = {}): SubjectHead {
  const first = new Int8Array(allSubjectTypes.length * FEATURES);
  first[allSubjectTypes.indexOf('car') * FEATURES + UNDER] = 100;
  const firstBias = new Float32Array(allSubjectTypes.length);
  firstBias[allSubjectTypes.indexOf('other')] = 5;
  return {
    hidden: 0,
    mean: new Float32Array(FEATURES),
    scale: new Float32Array(FEATURES).fill(1),
    first,
    firstScale: new Float32Array(allSubjectTypes.length).fill(0.1),
    firstBias,
    second: new Int8Array(),
    secondScale: new Float32Array(),
    secondBias: new Float32Array(),
    temperature: 1,
    threshold: 0,
    ...changes,
  };
}

function start(t: ExecutionContext, changes: Parameters<typeof engineOptions>[0] = {}): Engine {
  const engine = createEngine(loadAddon(), engineOptions({ pixelThreads: 2, ...changes }));
  t.teardown(() => engine.close(0));
  return engine;
}

/** 1 in the left or the right half. */
const matteOf = (half: 'left' | 'right') => ({
  data: Float32Array.from({ length: 64 * 64 }, (_, at) => +(at % 64 < 32 === (half === 'left'))),
  width: 64,
  height: 64,
});

test('features are those under the matte, beside it, and of the whole image', async (t) => {
  const engine = start(t);
  const info = await engine.loadSubjectTypes({ detector });
  t.is(info.features, FEATURES);
  t.true(info.loadMs > 0);
  const image = halves(100, 80);
  const before = Buffer.from(image.data);
  const left = await engine.describe(image, { matte: matteOf('left') });
  const right = await engine.describe(image, { matte: matteOf('right') });
  t.is(left.subject, undefined);
  t.true((left.features[UNDER] ?? 0) > 0.99);
  t.true((right.features[UNDER] ?? 1) < 0.1);
  t.true(Math.abs((left.features[RED] ?? 0) - 255) < 1);
  t.true((right.features[RED] ?? 255) < 1);
  t.deepEqual(left.features.slice(WHOLE, INSIDE), right.features.slice(WHOLE, INSIDE));
  t.deepEqual(left.features.slice(INSIDE, OUTSIDE), right.features.slice(OUTSIDE));
  t.deepEqual(left.features.slice(OUTSIDE), right.features.slice(INSIDE, OUTSIDE));
  t.notDeepEqual(left.features.slice(INSIDE, OUTSIDE), left.features.slice(OUTSIDE));
  t.deepEqual(Buffer.from(image.data), before);
});

test('the head returns the type, its probabilities sum to 1, and a result below the threshold is `other`', async (t) => {
  const engine = start(t);
  const image = halves(64, 64);
  const tell = async (changes: Partial<SubjectHead>, half: 'left' | 'right') => {
    await engine.loadSubjectTypes({ detector, head: head(changes) });
    const { subject } = await engine.describe(image, { matte: matteOf(half) });
    if (!subject) throw new Error('no subject');
    return subject;
  };
  const car = await tell({}, 'left');
  t.is(car.type, 'car');
  t.true(Math.abs(car.probabilities.reduce((a, b) => a + b, 0) - 1) < 1e-5);
  t.true((car.probabilities[allSubjectTypes.indexOf('car')] ?? 0) > 0.98);
  t.is((await tell({}, 'right')).type, 'other');
  const unsure = await tell({ threshold: 0.999 }, 'left');
  t.is(unsure.type, 'other');
  t.deepEqual(unsure.probabilities, car.probabilities);
  const warm = await tell({ temperature: 10 }, 'left');
  t.true((warm.probabilities[allSubjectTypes.indexOf('car')] ?? 1) < 0.5);
});

test('a hidden layer applies its activation: negative inputs do not count', async (t) => {
  const engine = start(t);
  const first = new Int8Array(2 * FEATURES);
  first[UNDER] = 100;
  first[FEATURES + UNDER] = -100;
  const second = new Int8Array(2 * allSubjectTypes.length);
  second[2 * allSubjectTypes.indexOf('animal')] = 100;
  second[2 * allSubjectTypes.indexOf('graphic') + 1] = 100;
  const layers = head({
    hidden: 2,
    first,
    firstScale: Float32Array.of(0.1, 0.1),
    firstBias: Float32Array.of(0, 5),
    second,
    secondScale: new Float32Array(allSubjectTypes.length).fill(0.1),
    secondBias: new Float32Array(allSubjectTypes.length),
  });
  await engine.loadSubjectTypes({ detector, head: layers });
  const typeUnder = async (half: 'left' | 'right') =>
    (await engine.describe(halves(64, 64), { matte: matteOf(half) })).subject?.type;
  t.is(await typeUnder('left'), 'animal');
  t.is(await typeUnder('right'), 'graphic');
});

for (const pixelThreads of [1, 3]) {
  test(`a matte with classification returns the type and the same pixels, on ${pixelThreads} pixel threads`, async (t) => {
    const engine = start(t, { workers: 2, pixelThreads });
    await engine.load(white);
    await engine.loadSubjectTypes({ detector, head: head() });
    const ask = async (image: Pixels, subject: boolean) => {
      const data = Uint8Array.from(image.data);
      const result = await engine.matte({ ...image, data }, { ...planFor('white', image), subject });
      return { ...result, data };
    };
    const image = halves(300, 200);
    const without = await ask(image, false);
    t.is(without.subject, undefined);
    const together = await Promise.all([ask(image, true), ask(image, true), ask(image, true)]);
    for (const each of together) {
      t.is(each.subject?.type, 'car');
      t.true(each.subjectMs >= 0);
      t.deepEqual(each.data, without.data);
    }
  });
}

test('the region of interest bounds what is classified', async (t) => {
  const engine = start(t);
  const everything = networks.spec('everything', { gain: 0, bias: 20 });
  await engine.load(everything);
  await engine.loadSubjectTypes({ detector, head: head() });
  const typeIn = async (left: number) => {
    const image = halves(200, 100);
    const roi = { left, top: 0, width: 80, height: 100 };
    return (await engine.matte(image, { ...planFor('everything', image), roi, subject: true })).subject?.type;
  };
  t.is(await typeIn(10), 'car');
  t.is(await typeIn(115), 'other');
});

for (const [what, broken] of Object.entries({
  'NaN in its first output': { bias: Number.NaN },
  'infinity in its first output': { bias: Number.POSITIVE_INFINITY, sigmoid: false },
  'NaN in its second output': { secondBias: Number.NaN },
  'infinity in its second output': { secondBias: Number.NEGATIVE_INFINITY },
})) {
  test(`a detector with ${what} is ENGINE_MODEL, not an arbitrary type`, async (t) => {
    const engine = start(t);
    await engine.load(white);
    const sick = networks.spec(
      `sick ${what}`,
      { gain: 0.1, bias: -12.75, sigmoid: true, secondOutput: true, ...broken },
      plain,
    );
    await engine.loadSubjectTypes({ detector: sick, head: head() });
    const expected = { code: 'ENGINE_MODEL', message: /detector of subject types.*not finite numbers/ };
    const image = halves(64, 64);
    await t.throwsAsync(engine.describe(image, { matte: matteOf('left') }), expected);
    await t.throwsAsync(engine.matte(image, { ...planFor('white', image), subject: true }), expected);
    await engine.loadSubjectTypes({ detector, head: head() });
    t.is((await engine.describe(halves(64, 64), { matte: matteOf('left') })).subject?.type, 'car');
  });
}

test('a matte with values that are not finite is ENGINE_BAD_INPUT, not an arbitrary type', async (t) => {
  const engine = start(t);
  await engine.loadSubjectTypes({ detector, head: head() });
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
    const matte = matteOf('left');
    matte.data[64 * 40 + 5] = value;
    await t.throwsAsync(engine.describe(halves(64, 64), { matte }), { code: 'ENGINE_BAD_INPUT' });
  }
});

test("a network input smaller than the detector's is not used: the image is used instead", async (t) => {
  const engine = start(t);
  await engine.load(networks.spec('small', { width: 32, height: 32 }));
  await engine.loadSubjectTypes({ detector, head: head() });
  const image = halves(300, 200);
  const { subject } = await engine.matte(image, { ...planFor('small', image), subject: true });
  t.is(subject?.type, 'car');
});

test('a matte being described is lent: no other job may write to it meanwhile', async (t) => {
  const engine = start(t);
  await engine.load(white);
  await engine.loadSubjectTypes({ detector });
  const matte = matteOf('left');
  const within = { data: new Uint8Array(matte.data.buffer, 64 * 4, 64 * 8), width: 16, height: 8 };
  const job = engine.describe(halves(64, 64), { matte });
  await t.throwsAsync(engine.matte(within, planFor('white', within)), {
    instanceOf: RangeError,
    message: /belong to the job/,
  });
  // Another job may read it.
  const other = engine.describe(halves(64, 64), { matte });
  t.deepEqual((await job).features, (await other).features);
  await engine.matte(within, planFor('white', within));
});

test('a missing or unsuitable network is ENGINE_MODEL, an invalid head is a TypeError', async (t) => {
  const engine = start(t);
  await engine.load(white);
  const image = halves(64, 64);
  const plan = { ...planFor('white', image), subject: true };
  const matte = matteOf('left');
  const model = (message: RegExp) => ({ code: 'ENGINE_MODEL', message });
  await t.throwsAsync(engine.matte(image, plan), model(/loaded/));
  await t.throwsAsync(engine.describe(image, { matte }), model(/loaded/));
  const one = networks.spec('one output', { sigmoid: true }, plain);
  await t.throwsAsync(engine.loadSubjectTypes({ detector: one }), model(/2 outputs are needed/));
  const shifted = { ...detector, mean: [1, 0, 0] } as const;
  await t.throwsAsync(engine.loadSubjectTypes({ detector: shifted }), model(/RGB 0 to 255/));
  const short = head({ mean: new Float32Array(9), scale: new Float32Array(9), first: new Int8Array(63) });
  await t.throwsAsync(engine.loadSubjectTypes({ detector, head: short }), model(/wants 9 features/));
  const uneven = head({ scale: new Float32Array(FEATURES - 1) });
  await t.throwsAsync(engine.loadSubjectTypes({ detector, head: uneven }), model(/do not fit/));
  // Features without a head: no types.
  await engine.loadSubjectTypes({ detector });
  await t.throwsAsync(engine.matte(image, plan), model(/loaded/));
  const wrong = { ...head(), first: new Uint8Array(4) } as unknown as SubjectHead;
  await t.throwsAsync(async () => engine.loadSubjectTypes({ detector, head: wrong }), {
    instanceOf: TypeError,
  });
  await t.throwsAsync(engine.describe(image, { matte: { ...matte, width: 9 } }), {
    instanceOf: RangeError,
  });
});
