import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import test from 'ava';
import { type ChoiceKey, fastest, KeptChoice } from '../../src/models/choice.ts';
import { ModelError } from '../../src/models/error.ts';
import type { Choices, PrecisionChoice } from '../../src/models/precision.ts';
import { temporaryFolder } from '../fixtures/cli.ts';
import { tinyManifest } from '../fixtures/networks.ts';

const because = 'not measured';
const floats = { precision: 'fp32', because } as const;
const bf16 = { precision: 'bf16', operators: 'avx512_bf16', because } as const;
const own = { precision: 'int8', operators: 'avx2', because } as const;
const standard = { precision: 'int8', because } as const;

/** Milliseconds of each run of a form, and what its output differs by from floats; ended: it cannot be run. */
interface Form {
  readonly ms: readonly number[];
  readonly off?: number;
  readonly ended?: string;
  readonly large?: boolean;
  /** The run, from 0, that fails. */
  readonly endedAt?: number;
}

const tooLarge = new ModelError('MODEL_MEMORY', 'It takes about 3000 MB.');

async function measure(choices: Choices, forms: ReadonlyMap<PrecisionChoice, Form>) {
  const runs: PrecisionChoice[] = [];
  const notices: string[] = [];
  const run = async (choice: PrecisionChoice) => {
    const { ms = [], off = 0, ended, endedAt, large } = forms.get(choice) ?? {};
    if (large) throw tooLarge;
    const before = runs.filter((each) => each === choice).length;
    if (ended !== undefined || endedAt === before) throw new Error(ended);
    runs.push(choice);
    return { ms: ms[before] ?? Number.NaN, output: Float32Array.of(0.5 + off, 0.25) };
  };
  const { signal } = new AbortController();
  const chosen = await fastest(choices, run, { notice: (text) => void notices.push(text), signal });
  return { chosen, runs, notices };
}

test('the fastest form is taken, and one that takes far longer runs once', async (t) => {
  const forms = new Map<PrecisionChoice, Form>([
    [floats, { ms: [1301] }],
    [bf16, { ms: [1000], off: 1e-4 }],
  ]);
  const { chosen, runs, notices } = await measure([floats, bf16], forms);
  t.deepEqual(chosen, { ...bf16, because: 'measured: 1000 ms of processor time; fp32 1301 ms' });
  t.deepEqual(runs, [floats, bf16]);
  t.deepEqual(notices, []);
});

test('where the usual form takes hardly any time at once, no other one runs', async (t) => {
  const { chosen, runs } = await measure(
    [floats, bf16],
    new Map<PrecisionChoice, Form>([
      [floats, { ms: [49] }],
      [bf16, { ms: [1] }],
    ]),
  );
  t.deepEqual(chosen, { ...floats, because: 'measured: 49 ms of processor time' });
  t.deepEqual(runs, [floats]);
  const later = await measure(
    [floats, bf16],
    new Map<PrecisionChoice, Form>([
      [floats, { ms: [52, 49, 49] }],
      [bf16, { ms: [45, 45, 45] }],
    ]),
  );
  t.is(later.chosen?.precision, 'bf16');
});

test('forms that take about as long run three times, alternating, and the fastest run counts', async (t) => {
  const forms = new Map<PrecisionChoice, Form>([
    [own, { ms: [130, 90, 110] }],
    [standard, { ms: [100, 105, 120] }],
  ]);
  const { chosen, runs } = await measure([own, standard], forms);
  t.is(chosen?.because, "measured: 90 ms of processor time; int8 by ONNX Runtime's operators 100 ms");
  t.is(chosen?.operators, 'avx2');
  t.deepEqual(runs, [own, standard, own, standard, own, standard]);
});

for (const [what, off] of [
  ['differs from floats', 0.00041],
  ['gives NaN', Number.NaN],
] as const)
  test(`a faster form that ${what} is refused with a notice`, async (t) => {
    const forms = new Map<PrecisionChoice, Form>([
      [floats, { ms: [1000] }],
      [bf16, { ms: [100], off }],
    ]);
    const { chosen, notices } = await measure([floats, bf16], forms);
    t.is(chosen?.precision, 'fp32');
    t.is(notices.length, 1);
    t.regex(notices[0] ?? '', /^The network is not computed in bf16 by Cutout's .*differs from floats by/);
  });

test('what photos have shown is not judged by the drawn image', async (t) => {
  const forms = new Map<PrecisionChoice, Form>([
    [bf16, { ms: [100, 100, 100], off: 0.01 }],
    [floats, { ms: [120, 120, 120] }],
  ]);
  const { chosen, notices } = await measure([bf16, floats], forms);
  t.is(chosen?.precision, 'bf16');
  t.deepEqual(notices, []);
});

test('a form that fails is a notice; where the usual one does, its opening will say why', async (t) => {
  const failed = await measure(
    [floats, bf16],
    new Map<PrecisionChoice, Form>([
      [floats, { ms: [1000] }],
      [bf16, { ms: [], ended: 'no memory.' }],
    ]),
  );
  t.is(failed.chosen?.precision, 'fp32');
  t.deepEqual(failed.notices, [
    "The network is not computed in bf16 by Cutout's operators for avx512_bf16: no memory.",
  ]);
  const usual = await measure(
    [floats, bf16],
    new Map<PrecisionChoice, Form>([[floats, { ms: [], ended: 'no memory.' }]]),
  );
  t.is(usual.chosen, undefined);
  t.deepEqual([usual.runs, usual.notices], [[], []]);
  // Later it has been measured: what the others took counts.
  const later = await measure(
    [own, standard],
    new Map<PrecisionChoice, Form>([
      [own, { ms: [100], endedAt: 1 }],
      [standard, { ms: [110, 110, 110] }],
    ]),
  );
  t.is(later.chosen?.because, 'measured: 110 ms of processor time');
});

test('where floats do not fit into the memory, the first form that does is taken', async (t) => {
  const byRows = { ...own, because } as const;
  const small = { ms: [900] };
  const { chosen, runs, notices } = await measure(
    [floats, bf16, byRows],
    new Map<PrecisionChoice, Form>([
      [floats, { ms: [], large: true }],
      [bf16, small],
      [byRows, { ms: [100] }],
    ]),
  );
  t.like(chosen, { precision: 'bf16', because: 'measured: 900 ms of processor time' });
  t.deepEqual(runs, [bf16], '8 bits cannot be compared with floats');
  t.deepEqual(notices, ['The network is not computed in fp32: It takes about 3000 MB.']);
  const smaller = await measure(
    [floats, bf16, byRows],
    new Map<PrecisionChoice, Form>([
      [floats, { ms: [], large: true }],
      [bf16, { ms: [], large: true }],
      [byRows, small],
    ]),
  );
  t.is(smaller.chosen?.precision, 'int8');
  const none = await measure(
    [floats, bf16],
    new Map<PrecisionChoice, Form>([
      [floats, { ms: [], large: true }],
      [bf16, { ...small, off: Number.NaN }],
    ]),
  );
  t.is(none.chosen, undefined, 'what is not a number is not taken');
});

test('a choice is made anew with less memory, and with more where a form did not fit', async (t) => {
  const modelsDir = temporaryFolder(t);
  const manifest = tinyManifest({ kind: 'file', path: 'published.onnx' });
  const with_ = (memory: number) =>
    new KeptChoice(modelsDir, manifest, { choices: [floats, bf16], threads: 2, version: '1', memory });
  await mkdir(path.dirname(with_(1000).file));
  await with_(1000).keep(floats);
  t.truthy(await with_(1000).read());
  t.truthy(await with_(2000).read());
  t.is(await with_(900).read(), undefined);
  await with_(1000).keep(bf16, true);
  t.is((await with_(1000).read())?.precision, 'bf16');
  t.is(await with_(2000).read(), undefined);
});

test('a choice is kept for the same processor, version, threads and forms; another or a damaged one is none', async (t) => {
  const modelsDir = temporaryFolder(t);
  const manifest = tinyManifest({ kind: 'file', path: 'published.onnx' });
  const cpuinfo = path.join(modelsDir, 'cpuinfo');
  await writeFile(cpuinfo, 'model name : one\nflags : avx2\n');
  const key: ChoiceKey = { choices: [own, standard], threads: 2, version: '1', memory: 1000, cpuinfo };
  const choice = (changed: Partial<ChoiceKey> = {}, of = manifest) =>
    new KeptChoice(modelsDir, of, { ...key, ...changed });
  await choice().keep(standard);
  t.is(await choice().read(), undefined, 'there is no folder');
  const { file } = choice();
  await mkdir(path.dirname(file));
  await choice().keep({ ...standard, because: 'measured' });
  const kept = { ...standard, because: 'measured' };
  t.deepEqual(await choice().read(), kept);
  t.is(await choice({ version: '2' }).read(), undefined);
  t.is(await choice({ threads: 4 }).read(), undefined);
  t.is(await choice({ choices: [standard, floats] }).read(), undefined);
  const other = { ...manifest, file: { ...manifest.file, sha256: '0'.repeat(64) } };
  t.is(await choice({}, other).read(), undefined);
  await writeFile(cpuinfo, 'model name : two\nflags : avx2\n');
  t.is(await choice().read(), undefined);
  await writeFile(cpuinfo, 'model name : one\nflags : avx2\n');
  t.deepEqual(await choice().read(), kept);
  const text = await readFile(file, 'utf8');
  for (const damaged of ['', text.slice(0, -5), text.replace('"at":1', '"at":7'), '[]']) {
    await writeFile(file, damaged);
    t.is(await choice().read(), undefined, damaged);
  }
});
