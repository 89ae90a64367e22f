import test from 'ava';
import { outputKey, SubjectSelection } from '../../src/cutout/subjectSelection.ts';
import type { Selector } from '../../src/engine/selector.ts';
import type { SelectPlan } from '../../src/engine/types.ts';
import type { NormalisedPrompt } from '../../src/geometry/subjectPrompt.ts';

/** The mask of a prompt is the prompt. */
const maskOf = ({ points, box }: Omit<SelectPlan, 'embedding'>) => ({
  data: Buffer.from(JSON.stringify([points, box])),
  width: 2,
  height: 2,
});

function selector() {
  const calls = { embedded: 0, selected: 0 };
  const made: Selector = {
    available: async () => true,
    ready: async () => {},
    embed: async () => {
      calls.embedded++;
      return { data: new Uint8Array(10_000) };
    },
    select: async (plan) => {
      calls.selected++;
      return { mask: maskOf(plan), score: 1 };
    },
  };
  return { calls, made };
}

const centre: NormalisedPrompt = { points: [{ x: 0.5, y: 0.5, include: true }] };

const ask = (
  selection: SubjectSelection,
  imageId: string | undefined,
  accountId = 'one',
  prompt = centre,
  width = 1,
) =>
  selection.find({
    accountId,
    imageId,
    pixels: { data: new Uint8Array(4 * width), width, height: 1 },
    prompt,
    signal: new AbortController().signal,
  });

/** The cache key of the image. */
const keyOf = async (...of: Parameters<typeof ask>): Promise<string> =>
  (await ask(...of)).imageKey ?? 'nothing is cached';

const settings = { networks: ['isnet'], sizes: [{ width: 10, height: 10 }] };
const output = {
  data: new Uint8Array(4000),
  width: 50,
  height: 20,
  view: { left: 0, top: 0, width: 9, height: 9 },
};

test('a call whose pixels are read for another one ends when they are not read any more', async (t) => {
  const { made } = selector();
  let embed = () => {};
  const embedding = new Promise<void>((resolve) => {
    embed = resolve;
  });
  const selection = new SubjectSelection(
    {
      ...made,
      embed: async () => {
        await embedding;
        return { data: new Uint8Array(10) };
      },
    },
    { ttlSeconds: 60, maxBytes: 1e6 },
  );
  const away = new AbortController();
  const pixels = { data: new Uint8Array(4), width: 1, height: 1 };
  const call = { accountId: 'one', imageId: 'image', pixels, prompt: centre };
  const first = selection.find({ ...call, signal: away.signal });
  const second = selection.find({ ...call, signal: new AbortController().signal });
  let ended = false;
  const end = t.throwsAsync(async () => {
    try {
      await first;
    } finally {
      ended = true;
    }
  });
  away.abort(new Error('the caller left'));
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.false(ended);
  embed();
  t.is((await end)?.message, 'the caller left');
  t.false((await second).embedded);
});

test('an image is embedded anew at another size, so that a result does not depend on which came first', async (t) => {
  const { calls, made } = selector();
  const selection = new SubjectSelection(made, { ttlSeconds: 60, maxBytes: 50_000 });
  for (const width of [1, 2, 1, 2]) await ask(selection, 'image', 'one', centre, width);
  t.is(calls.embedded, 2);
});

test('what is cached of any number of images stays within its bound, the newest longest', async (t) => {
  const { calls, made } = selector();
  const selection = new SubjectSelection(made, { ttlSeconds: 60, maxBytes: 50_000 });
  let last = '';
  for (let i = 0; i < 40; i++) {
    const imageKey = await keyOf(selection, `image ${i}`);
    selection.outputs.set(outputKey(imageKey, settings), output);
    t.true(selection.bytes <= 50_000, `${selection.bytes} bytes`);
    last = imageKey;
  }
  t.true(selection.bytes > 30_000);
  t.is(selection.outputs.get(outputKey(last, settings)), output);
  t.false((await ask(selection, 'image 39')).embedded);
  t.true((await ask(selection, 'image 0')).embedded);
  t.is(calls.embedded, 41);
  selection.clear();
  t.is(selection.bytes, 0);
});

test('an output is that of one image, account, size and pair of networks', async (t) => {
  const selection = new SubjectSelection(selector().made, { ttlSeconds: 60, maxBytes: 1e6 });
  const { outputs } = selection;
  const imageKey = await keyOf(selection, 'image');
  const get = (key: string, of = settings) => outputs.get(outputKey(key, of));
  outputs.set(outputKey(imageKey, settings), output);
  t.is(get(imageKey), output);
  t.is(get(await keyOf(selection, 'another')), undefined);
  t.is(get(await keyOf(selection, 'image', 'two')), undefined);
  t.is(get(await keyOf(selection, 'image', 'one', centre, 2)), undefined);
  t.is(get(imageKey, { ...settings, networks: ['isnet', 'u2net'] }), undefined);
  t.is(get(imageKey, { ...settings, sizes: [{ width: 10, height: 11 }] }), undefined);
});

test('nothing is cached where results are not: without a time to live, or of an image without a name', async (t) => {
  for (const [ttlSeconds, imageId] of [
    [0, 'image'],
    [60, undefined],
  ] as const) {
    const { calls, made } = selector();
    const selection = new SubjectSelection(made, { ttlSeconds, maxBytes: 1e6 });
    const found = [await ask(selection, imageId), await ask(selection, imageId)];
    t.deepEqual(
      found.map(({ imageKey, embedded }) => [imageKey, embedded]),
      [
        [undefined, true],
        [undefined, true],
      ],
    );
    t.deepEqual([calls.embedded, selection.bytes], [2, 0]);
  }
});

test('the mask of the initial prompt is the same with and without what is cached', async (t) => {
  const out = { x: 0.1, y: 0.1, include: false };
  const more = { x: 0.2, y: 0.2, include: true };
  const box = { x1: 0, y1: 0, x2: 0.5, y2: 0.5 };
  const [point] = centre.points;
  if (!point) return t.fail();
  const cases: readonly (readonly [NormalisedPrompt, NormalisedPrompt])[] = [
    [{ points: [point, more] }, centre],
    [{ points: [out, point, more] }, centre],
    [
      { points: [point, out], box },
      { points: [], box },
    ],
  ];
  for (const [prompt, first] of cases) {
    const { calls, made } = selector();
    const warm = new SubjectSelection(made, { ttlSeconds: 60, maxBytes: 1e6 });
    const alone = await ask(warm, 'image', 'one', first);
    t.deepEqual([alone.mask, alone.firstMask], [maskOf(first), undefined]);
    const clicked = await ask(warm, 'image', 'one', prompt);
    t.is(calls.selected, 2, 'the mask of the initial prompt was cached');
    const cold = await ask(
      new SubjectSelection(made, { ttlSeconds: 0, maxBytes: 1e6 }),
      'image',
      'one',
      prompt,
    );
    t.is(calls.selected, 4);
    for (const found of [clicked, cold])
      t.deepEqual([found.mask, found.firstMask], [maskOf(prompt), maskOf(first)]);
    t.is((await ask(warm, 'another', 'one', prompt)).firstMask?.data.length, maskOf(first).data.length);
    t.is(calls.selected, 6, 'of another image');
  }
});
