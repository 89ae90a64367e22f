import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import test from 'ava';
import sharp from 'sharp';
import { correlation, parseCsv, readManifest, reportAgreement } from '../../bench/quality/agreement.js';
import { drawImage, sizeOf } from '../../bench/quality/generate/index.js';
import { random } from '../../bench/quality/generate/random.js';
import { png, writeImage } from '../../bench/quality/generate/write.js';
import { openKernels, split, withAlpha } from '../../bench/quality/kernels.js';
import { cropped, requestCutout } from '../../bench/quality/methods.js';
import { blur, enlarge, reduce, simulate } from '../../bench/quality/planes.js';
import { openScores } from '../../bench/quality/pool.js';
import { openKnown, within } from '../../bench/quality/sources.js';
import { errorMap, over, worstPlace } from '../../bench/quality/strips.js';
import { figureOf, isWrong, ratioOf, worseShare } from '../../bench/quality/summary.js';
import { measureWhole, PLAIN, reportWhole } from '../../bench/quality/whole.js';
import { inBuild } from '../../scripts/setup/paths.js';

const ADDON = inBuild('native', 'Release', 'cutout_test.node');
const folder = () => mkdtempSync(path.join(tmpdir(), 'cutout-quality-'));
const near = (t, value, wanted, slack = 1e-6) =>
  t.true(Math.abs(value - wanted) <= slack, `${value} instead of ${wanted}`);
const quiet = () => {};

test('reduction is the mean over the area, fractions of pixels included', (t) => {
  const data = Uint8Array.of(0, 51, 102, 255, 0, 0, 255, 255, 51, 51, 51, 51);
  const [plane] = reduce(data, { width: 4, height: 3, channels: 1 }, { width: 2, height: 1 });
  near(t, plane[0], (51 + 0 + 0 + 51 + 51) / 6 / 255);
  near(t, plane[1], (102 + 255 + 255 + 255 + 51 + 51) / 6 / 255);
  // Three pixels into two: each takes one and a half.
  const [line] = reduce(
    Uint8Array.of(0, 120, 240),
    { width: 3, height: 1, channels: 1 },
    { width: 2, height: 1 },
  );
  near(t, line[0], 60 / 1.5 / 255);
  near(t, line[1], (60 + 240) / 1.5 / 255);
  const planes = reduce(
    Uint8Array.of(1, 2, 3, 5, 6, 7),
    { width: 2, height: 1, channels: 3 },
    { width: 1, height: 1 },
  );
  for (const [c, one] of planes.entries()) near(t, one[0], (c + 3) / 255);
});

test('enlarging is linear between centres and flat beyond them', (t) => {
  const out = enlarge(Float32Array.of(0, 1), { width: 2, height: 1 }, { width: 8, height: 2 });
  const row = [0, 0, 0.125, 0.375, 0.625, 0.875, 1, 1].map((value) => Math.round(value * 255));
  t.deepEqual([...out], [...row, ...row]);
  t.deepEqual(
    [...enlarge(Float32Array.of(0.4), { width: 1, height: 1 }, { width: 2, height: 3 })],
    new Array(6).fill(102),
  );
  const down = enlarge(Float32Array.of(0, 1), { width: 1, height: 2 }, { width: 1, height: 4 });
  t.deepEqual([...down], [0, 64, 191, 255]);
});

test('the simulated network is the truth, reduced, blurred and rounded', (t) => {
  const size = { width: 32, height: 24 };
  const truth = Uint8Array.from({ length: 768 }, (_, i) => (i % 32 >= 16 ? 255 : 0));
  const sharpEdge = simulate(truth, size, 4, 0);
  t.deepEqual([...sharpEdge.p.subarray(0, 8)], [0, 0, 0, 0, 1, 1, 1, 1]);
  const soft = simulate(truth, size, 4, 0.8);
  t.is(soft.p.length, 48);
  // A step under a Gaussian of σ .8, sampled at ±.5, ±1.5 …: sums of its samples.
  const taps = [-3, -2, -1, 0, 1, 2, 3].map((d) => Math.exp((-d * d) / 1.28));
  const total = taps.reduce((a, b) => a + b, 0);
  near(t, soft.p[4], taps.slice(0, 4).reduce((a, b) => a + b, 0) / total, 0.003);
  near(t, soft.p[3] + soft.p[4], 1, 0.005);
  t.true(soft.p.every((value) => Number.isInteger(Math.round(value * 255 * 1e4) / 1e4)));
  const flat = blur(new Float32Array(35).fill(0.3), { width: 7, height: 5 }, 2);
  t.true(flat.every((value) => Math.abs(value - 0.3) < 1e-6));
});

test('refinement through the addon comes nearer to the truth than plain enlarging, and keeps colours inside', (t) => {
  const kernels = openKernels(ADDON, availableParallelism());
  const image = cropped(drawImage({ kind: 'crisp', width: 330, height: 250, seed: 2 }), 4);
  t.deepEqual([image.width, image.height, image.alpha.length], [328, 248, 328 * 248]);
  const { composite: _, ...known } = { ...image, rgb: drawnRgb(image) };
  const network = simulate(known.alpha, known, 4, 0.8);
  const { matte, rgb } = kernels.refine(known, network);
  const plain = enlarge(network.p, network, known);
  const error = (a) => a.reduce((sum, value, i) => sum + (value - known.alpha[i]) ** 2, 0);
  t.true(error(matte) < error(plain));
  matte.forEach((a, i) => {
    if (a === 255 && rgb[i * 3] !== known.rgb[i * 3]) t.fail('an opaque pixel changed its colour');
    if (a === 0 && rgb[i * 3] !== 0) t.fail('a clear pixel has a colour');
  });
  t.is(openKernels(path.join(folder(), 'none.node'), 1), undefined);
});

/** The composite of an image cut like its other parts. */
const drawnRgb = ({ width, height }) =>
  cropped(
    {
      ...drawImage({ kind: 'crisp', width: 330, height: 250, seed: 2 }),
      rgb: drawImage({ kind: 'crisp', width: 330, height: 250, seed: 2 }).composite,
    },
    4,
  ).rgb.subarray(0, width * height * 3);

test('RGB and RGBA go both ways', (t) => {
  const rgb = Uint8Array.of(1, 2, 3, 4, 5, 6);
  t.deepEqual([...withAlpha(rgb)], [1, 2, 3, 255, 4, 5, 6, 255]);
  const parts = split(Uint8Array.of(1, 2, 3, 9, 4, 5, 6, 8));
  t.deepEqual([...parts.matte], [9, 8]);
  t.deepEqual([...parts.rgb], [...rgb]);
});

test('figures of a set: means, F of the mean curve, ratios with intervals, images that became worse', (t) => {
  const curve = (at) => Array.from({ length: 256 }, (_, i) => (i === at ? 1 : 0.2));
  const rows = [
    {
      name: 'a',
      kind: 'x',
      scores: { m: { grad: 1, maxF: 1, curve: curve(3), gross: 0.01 }, p: { grad: 2, gross: 0.2 } },
    },
    {
      name: 'b',
      kind: 'x',
      scores: { m: { grad: 3, maxF: 1, curve: curve(200), gross: 0.01 }, p: { grad: 2, gross: 0.01 } },
    },
    {
      name: 'c',
      kind: 'y',
      scores: { m: { grad: 2.005, maxF: 1, curve: curve(3), gross: 0 }, p: { grad: 2, gross: 0 } },
    },
  ];
  near(t, figureOf(rows, 'm', 'grad'), 6.005 / 3);
  near(t, figureOf(rows, 'm', 'maxF'), (1 + 1 + 0.2) / 3);
  t.true(Number.isNaN(figureOf(rows, 'm', 'colour')));
  const {
    ratio,
    interval: [low, high],
    images,
  } = ratioOf(rows, 'm', 'p', 'grad');
  near(t, ratio, 6.005 / 6);
  t.true(low >= 0.5 && low < ratio && high > ratio && high <= 1.5);
  t.is(images, 3);
  t.is(ratioOf(rows, 'm', 'p', 'colour'), undefined);
  t.deepEqual(worseShare(rows, 'm', 'p', 'grad'), { share: 1 / 3, names: ['b'] });
  t.deepEqual(
    rows.map((row) => isWrong(row, 'p')),
    [true, false, false],
  );
});

test('strips show the place with the largest error, and errors with their direction', (t) => {
  const size = { width: 400, height: 300 };
  const truth = new Uint8Array(400 * 300);
  const matte = Uint8Array.from(truth);
  matte[40 * 400 + 30] = 90;
  for (let y = 200; y < 210; y++) matte.fill(200, y * 400 + 350, y * 400 + 360);
  const { left, top, side } = worstPlace(
    matte,
    truth,
    truth.map(() => 1),
    size,
  );
  t.true(left <= 350 && left + side >= 360 && top <= 200 && top + side >= 210);
  t.true(left >= 0 && top >= 0 && left + side <= 400 && top + side <= 300);
  t.deepEqual(
    [...errorMap(Uint8Array.of(10, 255, 0), Uint8Array.of(10, 0, 64))],
    [255, 255, 255, 255, 0, 0, 127, 127, 255],
  );
  t.deepEqual([...over(Uint8Array.of(200, 0, 0), Uint8Array.of(51), [0, 100, 255])], [40, 80, 204]);
});

test('images of a folder are paired with files of the same name, and separated from files that do not fit', async (t) => {
  const out = folder();
  const drawn = drawImage({ kind: 'fur', ...sizeOf(0.03), seed: 4 });
  await writeImage(out, drawn);
  const within = (name) => path.join(out, name);
  const all = async (options) => {
    const found = [];
    for await (const image of openKnown({ mp: [1], seed: 1, ...options }).images) found.push(image);
    return found;
  };
  const [image, ...others] = await all({
    images: within('images'),
    alphas: within('alphas'),
    foregrounds: within('foregrounds'),
    trimaps: within('alphas'),
  });
  t.is(others.length, 0);
  t.is(image.kind, 'fur');
  t.deepEqual(image.rgb, drawn.composite);
  t.deepEqual(image.alpha, drawn.alpha);
  t.deepEqual(image.foreground, drawn.foreground);
  t.deepEqual(
    image.band,
    drawn.alpha.map((a) => (a > 0 && a < 255 ? 1 : 0)),
  );
  // RGBA files are alphas too.
  mkdirSync(within('rgba'));
  const rgba = withAlpha(drawn.composite);
  for (let i = 0; i < drawn.alpha.length; i++) rgba[i * 4 + 3] = drawn.alpha[i];
  writeFileSync(path.join(within('rgba'), 'fur-4.png'), await png(rgba, drawn, 4));
  t.deepEqual((await all({ images: within('images'), alphas: within('rgba') }))[0].alpha, drawn.alpha);
  mkdirSync(within('small'));
  await sharp(path.join(within('alphas'), 'fur-4.png'))
    .resize(20, 20)
    .toFile(path.join(within('small'), 'fur-4.png'));
  await t.throwsAsync(all({ images: within('images'), alphas: within('small') }), {
    message: /alpha of fur-4: 20×20/,
  });
  mkdirSync(within('empty'));
  await t.throwsAsync(all({ images: within('images'), alphas: within('empty') }), {
    message: /has an alpha of the same name/,
  });
  await t.throwsAsync(all({ images: within('images') }), { message: /belong together/ });
  await t.throwsAsync(all({ cutouts: within('missing') }), { message: /does not exist/ });
  const two = await all({ mp: [0.02, 0.03], kinds: ['glass'], count: 1 });
  t.deepEqual(
    two.map(({ name }) => name),
    ['glass-1@0.02mp', 'glass-1@0.03mp'],
  );
});

/** A client that answers with the truth of known images. */
const perfect = (images) => ({
  async cutout(upload) {
    const { data, info } = await sharp(upload).raw().toBuffer({ resolveWithObject: true });
    const known = images.find(({ rgb }) => Buffer.compare(Buffer.from(rgb), data) === 0);
    const rgba = withAlpha(known.foreground);
    for (let i = 0; i < known.alpha.length; i++) rgba[i * 4 + 3] = known.alpha[i];
    return { status: 200, code: 'ok', ms: 1, body: await png(rgba, info, 4) };
  },
});

test('a perfect server has no error, a plain one is compared with it, and a wrong network is reported', async (t) => {
  const images = ['crisp', 'glass', 'hair', 'fur'].map((kind) => {
    const { composite, ...rest } = drawImage({ kind, width: 200, height: 150 });
    return { ...rest, rgb: composite, megapixels: 0.03 };
  });
  const network = {
    // Wrong on one image: everything is foreground.
    alphaOf: async ({ kind, alpha }) => (kind === 'glass' ? alpha.map(() => 255) : alpha),
    bilinear: (alpha) =>
      Uint8Array.from(alpha, (a, i) => (2 * a + alpha[Math.max(0, i - 2)] + (alpha[i + 2] ?? 0)) >> 2),
  };
  const scores = openScores(2);
  t.teardown(() => scores.close());
  const rows = await measureWhole({
    images: (async function* () {
      yield* images;
    })(),
    targets: [{ name: 'cutout', client: perfect(images) }],
    network,
    scores,
    strips: 2,
    progress: quiet,
  });
  t.is(rows.length, 4);
  for (const { scores: found } of rows) {
    t.is(found.cutout.mae, 0);
    t.is(found.cutout.colour, 0);
    t.true(found[PLAIN].mae > 0);
  }
  t.deepEqual(
    rows.map(({ strip }) => strip !== undefined),
    [true, true, false, false],
  );
  const { figures, parts, notes } = reportWhole(rows, ['cutout', PLAIN]);
  const figure = (name) => figures.find((one) => one.name === `quality.whole.0.03mp.${name}`);
  t.is(figure('grad_ratio').median, 0);
  t.deepEqual(figure('grad_ratio').goal, { atMost: 0.8 });
  t.is(figure('colour_ratio').median, 0);
  t.true(figure(`${PLAIN}.grad`).median > 0);
  t.true(
    notes.some((note) => /wrong on 1 of 4 images/.test(note)),
    notes.join(),
  );
  const wrong = parts.find(({ title }) => /network itself is wrong/.test(title));
  t.deepEqual(
    wrong.rows.map(([name]) => name),
    ['glass-1'],
  );
});

test('a server that finds no subject is distinguished from one that fails', async (t) => {
  const image = { rgb: new Uint8Array(12).fill(9), width: 2, height: 2 };
  const answering = (answer) => ({ cutout: async () => answer });
  const none = await requestCutout(answering({ status: 400, code: 'unknown_foreground' }), image);
  t.deepEqual([none.nothing, ...none.matte], [true, 0, 0, 0, 0]);
  await t.throwsAsync(requestCutout(answering({ status: 402, code: 'insufficient_credits' }), image), {
    message: /402 insufficient_credits/,
  });
  const body = await png(new Uint8Array(4), { width: 1, height: 1 }, 4);
  await t.throwsAsync(requestCutout(answering({ status: 200, code: 'ok', body }), image), {
    message: /1×1 pixels instead of 2×2/,
  });
});

test('a time limit ends after the image that reached it', async (t) => {
  const lines = [];
  const taken = [];
  const slow = (async function* () {
    for (let i = 0; ; i++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      yield i;
    }
  })();
  for await (const i of within(0.05, slow, { progress: (line) => lines.push(line) })) taken.push(i);
  t.true(taken.length >= 1 && taken.length <= 4, `${taken}`);
  t.deepEqual(lines, [`time is up after ${taken.length} images`]);
});

test('mattes made by others are read from a manifest, and agreement is summarised by origin', async (t) => {
  t.deepEqual(parseCsv('a,b\n1,"x, ""y"""\r\n2,\n'), [
    { a: '1', b: 'x, "y"' },
    { a: '2', b: '' },
  ]);
  const out = folder();
  const file = path.join(out, 'manifest.csv');
  writeFileSync(
    file,
    'path,set,kind,input,reference\np/a.jpg,s,input,,photo\np/b.jpg,s,input,,photo\nq/a.png,s,peer,p/a.jpg,peer output: net one (old)\nm/a.png,s,mask,p/a.jpg,mask\n',
  );
  const photos = await readManifest(file);
  t.deepEqual(
    photos.map(({ name }) => name),
    ['p/a.jpg'],
  );
  t.deepEqual(
    photos[0].peers.map(({ group }) => group),
    ['s: net one', 's: masks'],
  );
  t.is(photos[0].file, path.join(out, 'p', 'a.jpg'));
  const next = random(1);
  const a = Uint8Array.from({ length: 500 }, () => Math.floor(next() * 256));
  near(t, correlation(a, a), 1, 1e-12);
  near(
    t,
    correlation(
      a,
      a.map((value) => 255 - value),
    ),
    -1,
    1e-12,
  );
  t.is(correlation(a, new Uint8Array(500)), 0);
  t.is(correlation(new Uint8Array(5), new Uint8Array(5)), 1);
  const row = (group, value) => ({
    name: 'p',
    group,
    correlation: value,
    mae: 0.01,
    maxF: 0.9,
    structure: 0.9,
    boundaryIou: 0.8,
    nothing: false,
  });
  const { figures, parts } = reportAgreement([row('x', 0.9), row('x', 0.7), row('y', 1)]);
  t.is(figures[0].median, 0.9);
  t.deepEqual(
    parts[0].rows.map(([group, mattes]) => [group, mattes]),
    [
      ['x', 2],
      ['y', 1],
      ['all', 3],
    ],
  );
  near(t, parts[0].rows[0][2], 0.8, 1e-12);
});

/** Elements that are opened and not closed, or the other way round. */
function unbalanced(html) {
  const open = [];
  for (const [, end, name, rest] of html
    .replace(/<style>[\s\S]*?<\/style>/g, '')
    .matchAll(/<(\/?)([a-z][a-z0-9]*)((?:"[^"]*"|[^">])*)>/g)) {
    if (/^(meta|img|input|br|link)$/.test(name) || rest.endsWith('/')) continue;
    if (!end) open.push(name);
    else if (open.pop() !== name) return name;
  }
  return open.join();
}

test('the whole bench against a running server: figures for programs, a page that needs no other host', async (t) => {
  const { command, run } = await import(inBuild('ts', 'bench', 'quality.js'));
  const { page } = await import(inBuild('ts', 'bench', 'lib', 'report', 'page.js'));
  const { measure } = await import(inBuild('ts', 'bench', 'lib', 'frame.js'));
  const keys = [];
  const server = createServer(async (request, response) => {
    keys.push(request.headers['x-api-key']);
    const body = Buffer.concat(await request.toArray());
    const begin = body.indexOf(Buffer.from([0x89, 0x50, 0x4e, 0x47]));
    // Everything is foreground.
    response.end(await sharp(body.subarray(begin)).ensureAlpha().png({ compressionLevel: 1 }).toBuffer());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const options = {
    url: `http://127.0.0.1:${server.address().port}`,
    key: 'a-key',
    stages: ['whole', 'refine'],
    mp: [0.03],
    count: 2,
    kinds: ['crisp', 'glass'],
    seed: 1,
    variant: [],
    scales: [4],
    sigmas: [0.8],
    strips: 2,
    seconds: 600,
    network: path.join(folder(), 'none.onnx'),
  };
  const report = await measure({ command, run }, options, { progress: quiet });
  t.deepEqual([...new Set(keys)], ['a-key']);
  const figure = (name) => report.figures.find((one) => one.name === name).median;
  const truths = ['crisp', 'glass'].map((kind) => drawImage({ kind, ...sizeOf(0.03), seed: 1 }).alpha);
  const wanted = truths.map((alpha) => 1 - alpha.reduce((sum, a) => sum + a, 0) / 255 / alpha.length);
  near(t, figure('quality.whole.0.03mp.cutout.mae'), ((wanted[0] + wanted[1]) / 2) * 1000, 1e-6);
  t.true(figure('quality.refine.x4.s0.8.bandMse_ratio') < 1.05);
  t.true(report.notes.some((note) => /without plain enlarging/.test(note)));
  const html = page([JSON.parse(JSON.stringify(report))]);
  t.is(unbalanced(html), '');
  t.notRegex(html, /(?:src|href)="(?!data:|#)/);
  t.notRegex(html, /<script|url\(/);
  for (const words of [
    'crisp-1',
    'worst place: source',
    'truth on blue',
    'error: cutout',
    'Refinement alone, truth at 1/4',
    'on light',
  ])
    t.true(html.includes(words), words);
  t.true((html.match(/<img src="data:image\/(jpeg|png);base64,/g) ?? []).length >= 2 * (6 + 5) + 2 * (7 + 6));
});
