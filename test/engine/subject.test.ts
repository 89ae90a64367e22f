import test, { type ExecutionContext } from 'ava';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { allSubjectTypes, type Pixels, type SubjectHead } from '../../src/engine/types.ts';
import { engineOptions, halves, Networks, planFor } from '../fixtures/engineSetup.ts';
import { featureCount, head, underIndex } from '../fixtures/subjectHead.ts';

const networks = new Networks();
test.after.always(() => networks.remove());

const plain = { mean: [0, 0, 0], std: [1, 1, 1], output: 'probability' } as const;

const detector = networks.spec(
  'detector',
  { gain: 0.1, bias: -12.75, sigmoid: true, secondOutput: true },
  plain,
);
const white = networks.spec('white');

function start(t: ExecutionContext, changes: Parameters<typeof engineOptions>[0] = {}): Engine {
  const engine = createEngine(loadAddon(), engineOptions({ pixelThreads: 2, ...changes }));
  t.teardown(() => engine.close(0));
  return engine;
}

/** Networks that find the subject in the left, white half of an image or in the right, black one. */
const halfOf = { left: white, right: networks.spec('black', { gain: -40 }) } as const;

/** The subject that the head tells of an image whose left or right half is the matte. */
async function subjectIn(engine: Engine, half: 'left' | 'right', image = halves(64, 64)) {
  await engine.load(halfOf[half]);
  const { subject } = await engine.matte(image, { ...planFor(halfOf[half].name, image), subject: true });
  if (!subject) throw new Error('no subject');
  return subject;
}

test('the head returns the type, its probabilities sum to 1, and a result below the threshold is `other`', async (t) => {
  const engine = start(t);
  const tell = async (changes: Partial<SubjectHead>, half: 'left' | 'right') => {
    const { features, loadMs } = await engine.loadSubjectTypes({ detector, head: head(changes) });
    t.is(features, featureCount);
    t.true(loadMs > 0);
    return subjectIn(engine, half);
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
  const first = new Int8Array(2 * featureCount);
  first[underIndex] = 100;
  first[featureCount + underIndex] = -100;
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
  t.is((await subjectIn(engine, 'left')).type, 'animal');
  t.is((await subjectIn(engine, 'right')).type, 'graphic');
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
    await t.throwsAsync(engine.matte(image, { ...planFor('white', image), subject: true }), expected);
    await engine.loadSubjectTypes({ detector, head: head() });
    t.is((await subjectIn(engine, 'left')).type, 'car');
  });
}

test("a network input smaller than the detector's is not used: the image is used instead", async (t) => {
  const engine = start(t);
  await engine.load(networks.spec('small', { width: 32, height: 32 }));
  await engine.loadSubjectTypes({ detector, head: head() });
  const image = halves(300, 200);
  const { subject } = await engine.matte(image, { ...planFor('small', image), subject: true });
  t.is(subject?.type, 'car');
});

test('a missing or unsuitable network is ENGINE_MODEL, an invalid head is a TypeError', async (t) => {
  const engine = start(t);
  await engine.load(white);
  const image = halves(64, 64);
  const plan = { ...planFor('white', image), subject: true };
  const model = (message: RegExp) => ({ code: 'ENGINE_MODEL', message });
  await t.throwsAsync(engine.matte(image, plan), model(/loaded/));
  const one = networks.spec('one output', { sigmoid: true }, plain);
  await t.throwsAsync(
    engine.loadSubjectTypes({ detector: one, head: head() }),
    model(/2 outputs are needed/),
  );
  const shifted = { ...detector, mean: [1, 0, 0] } as const;
  await t.throwsAsync(engine.loadSubjectTypes({ detector: shifted, head: head() }), model(/RGB 0 to 255/));
  const short = head({ mean: new Float32Array(9), scale: new Float32Array(9), first: new Int8Array(63) });
  await t.throwsAsync(engine.loadSubjectTypes({ detector, head: short }), model(/wants 9 features/));
  const uneven = head({ scale: new Float32Array(featureCount - 1) });
  await t.throwsAsync(engine.loadSubjectTypes({ detector, head: uneven }), model(/do not fit/));
  await t.throwsAsync(engine.matte(image, plan), model(/loaded/));
  const wrong = { ...head(), first: new Uint8Array(4) } as unknown as SubjectHead;
  await t.throwsAsync(async () => engine.loadSubjectTypes({ detector, head: wrong }), {
    instanceOf: TypeError,
  });
});
