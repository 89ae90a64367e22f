import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import type { Command } from 'commander';
import sharp, { type Sharp } from 'sharp';
import { findNetwork, installedCatalogue } from '../src/models/catalogue.ts';
import { jsonLines } from './lib/child.ts';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { openImages } from './lib/images.ts';
import { type MatteDifference, matteDifference, worstSquare } from './lib/matteDifference.ts';
import { computed, type Figure, measured, type Outcome, type Strips, type Table } from './lib/outcome.ts';
import {
  childScript,
  eightBitNetwork,
  type PreparedForm,
  preparedForms,
  preparedNetwork,
  usedOperators,
} from './lib/paths.ts';
import { mean, median, sum } from './lib/stats.ts';

export const command: BenchCommand = {
  name: 'precision',
  title: 'The network in 8 bits, in bf16 and in floats',
  summary:
    "time and memory of a network in 8 bits, with Cutout's operators and ONNX Runtime's, in bf16 and in floats; mattes in 8 bits",
  shared: { rounds: 5, images: true },
  options: (command: Command) =>
    command
      .option('--network <name>', 'network of the catalogue that is prepared in both', 'isnet')
      .option('--worst <n>', 'images to show', values.whole, 10)
      .option('--threads <list>', 'threads of a run', values.numbers, [1, availableParallelism()])
      .option('--runs <n>', 'runs before memory is read', values.whole, 50)
      .option('--no-memory', 'leave memory out'),
  unavailable: () =>
    [preparedNetwork(), eightBitNetwork()].every((file) => existsSync(file))
      ? undefined
      : 'run `cutout doctor` first, which prepares the network in both',
  all: { full: { rounds: 3 } },
};

interface Options extends Shared {
  readonly network: string;
  readonly worst: number;
  readonly threads: readonly number[];
  readonly runs: number;
  readonly memory: boolean;
}

/** Milliseconds of the runs of one form. */
interface Times {
  readonly wall: readonly number[];
  readonly processor: readonly number[];
}

/** Of all forms that were run in turn on so many threads. */
export interface Speed {
  readonly threads: number;
  readonly times: Partial<Record<PreparedForm, Times>>;
}

const FORM_TITLES: Readonly<Record<PreparedForm, string>> = {
  own: "8 bits, Cutout's operators",
  eight: "8 bits, ONNX Runtime's operators",
  bf16: 'bf16',
  floats: 'floats',
};
const FORMS = Object.keys(FORM_TITLES) as readonly PreparedForm[];

/** Pairs of forms whose times are compared, and the goals on processors with dot products. */
const RATIOS = [
  ['own', 'eight', 0.6],
  ['own', 'floats', undefined],
  ['bf16', 'floats', undefined],
] as const satisfies readonly (readonly [PreparedForm, PreparedForm, number | undefined])[];

/** Ratios of the medians of processor time, of the pairs that were both measured. */
export function ratiosOf({ threads, times }: Speed): readonly Figure[] {
  return RATIOS.flatMap(([form, to, goal]) => {
    const [a, b] = [times[form], times[to]];
    if (!a || !b) return [];
    const title = `${FORM_TITLES[form]} over ${FORM_TITLES[to]}, ${threads} threads`;
    const ratio = median(a.processor) / median(b.processor);
    return [
      computed(
        `precision.${form}.over.${to}.${threads}`,
        title,
        '×',
        ratio,
        goal === undefined ? undefined : { atMost: goal },
      ),
    ];
  });
}

/** Time and memory of every form. */
export function formsTable(speeds: readonly Speed[], memory: Partial<Record<PreparedForm, number>>): Table {
  const ofThreads = speeds.flatMap(({ threads, times }) =>
    FORMS.flatMap((form): Table['rows'] => {
      const found = times[form];
      if (!found) return [];
      return [[FORM_TITLES[form], threads, median(found.wall), median(found.processor), memory[form] ?? '–']];
    }),
  );
  return {
    kind: 'table',
    title: 'The forms, run in turn',
    columns: ['form', 'threads', 'run ms', 'processor ms', 'MB after the runs'],
    rows: ofThreads,
    note: `Medians. Memory: what the engine adds to its process, from the optimised copy, on ${availableParallelism()} threads.`,
  };
}

interface EngineMemory {
  readonly before: number;
  readonly after: number;
  readonly peak: number;
  readonly runMs: number;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Side of the zoomed part of a matte. */
const ZOOM = 128;
const SHOWN = 320;

async function plane(file: string): Promise<Float32Array> {
  const bytes = await readFile(file);
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

const gray = (values: ArrayLike<number>, of: (value: number) => number): Buffer =>
  Buffer.from(Uint8Array.from(values, (value) => Math.max(0, Math.min(255, Math.round(255 * of(value))))));

const dataUrl = (type: string, bytes: Buffer) => `data:image/${type};base64,${bytes.toString('base64')}`;

/** Source, both mattes, their difference amplified eight times, and the worst part of each enlarged. */
async function stripOf(
  image: string,
  floats: Float32Array,
  eight: Float32Array,
  { width, height }: Size,
): Promise<Strips['rows'][number]['images']> {
  const raw = { raw: { width, height, channels: 1 as const } };
  const difference = floats.map((value, i) => Math.abs(value - (eight[i] ?? 0)) * 8);
  const square = { ...worstSquare(floats, eight, { width, height }, ZOOM), width: ZOOM, height: ZOOM };
  const small = async (pixels: Buffer) =>
    dataUrl('png', await sharp(pixels, raw).resize(SHOWN, SHOWN).png().toBuffer());
  const zoomed = async (pixels: Buffer) =>
    dataUrl(
      'png',
      await sharp(pixels, raw).extract(square).resize(SHOWN, SHOWN, { kernel: 'nearest' }).png().toBuffer(),
    );
  const source = sharp(image).rotate().flatten({ background: '#fff' }).resize(width, height, { fit: 'fill' });
  const stretched = await source.png().toBuffer();
  const jpeg = (image: Sharp) => image.resize(SHOWN, SHOWN).jpeg({ quality: 80 }).toBuffer();
  const [a, b] = [gray(floats, (v) => v), gray(eight, (v) => v)];
  return [
    { caption: 'image', src: dataUrl('jpeg', await jpeg(sharp(stretched))) },
    { caption: 'floats', src: await small(a) },
    { caption: '8 bits', src: await small(b) },
    { caption: 'difference × 8', src: await small(gray(difference, (v) => v)) },
    { caption: 'worst part', src: dataUrl('jpeg', await jpeg(sharp(stretched).extract(square))) },
    { caption: 'of it, floats', src: await zoomed(a) },
    { caption: 'of it, 8 bits', src: await zoomed(b) },
  ];
}

interface Event {
  readonly cat?: string;
  readonly dur?: number;
  readonly args?: { readonly op_name?: string };
}

/** Milliseconds that each operator took in a profile of ONNX Runtime, longest first. */
export function byOperator(events: readonly Event[]): readonly (readonly [string, number])[] {
  const times = new Map<string, number>();
  for (const { cat, dur = 0, args } of events) {
    if (cat !== 'Node' || args?.op_name === undefined) continue;
    times.set(args.op_name, (times.get(args.op_name) ?? 0) + dur / 1000);
  }
  return [...times].sort((a, b) => b[1] - a[1]);
}

/** Images to run: the given ones, or the generated one. */
async function imagePathsOf(images: readonly string[] | undefined, work: string): Promise<readonly string[]> {
  if (!images) {
    const file = path.join(work, 'drawn.jpg');
    await writeFile(file, await openImages().jpeg(1));
    return [file];
  }
  const found = await Promise.all(
    images.map(async (one) =>
      /\.\w+$/.test(one) ? [one] : (await readdir(one)).sort().map((name) => path.join(one, name)),
    ),
  );
  return found.flat().filter((file) => /\.(jpe?g|png|webp)$/i.test(file));
}

/**
 * Both networks with ONNX Runtime's operators in one process on every image, then timed alternately; then the engine with
 * every form in turn, and with each in a separate process, for its memory. The mattes are the network's own, before refinement.
 */
export async function run(
  { rounds, images, network, worst, threads: counts, runs, memory }: Options,
  { progress }: Context,
): Promise<Outcome> {
  const threads = availableParallelism();
  const files = preparedForms(network);
  const forms = FORMS.filter(
    (form) =>
      existsSync(files[form]) &&
      (form !== 'own' || usedOperators()) &&
      (form !== 'bf16' || usedOperators('bf16')),
  );
  const { input } = (await findNetwork(installedCatalogue(), network)).manifest;
  const networks = { floats: preparedNetwork(network), eight: eightBitNetwork(network) };
  const work = await mkdtemp(path.join(tmpdir(), 'cutout-bench-'));
  try {
    const imagePaths = await imagePathsOf(images, work);
    progress(`${imagePaths.length} images`);
    const profile = path.join(work, 'profile');
    const script = childScript('precisionRun.js');
    const [printed] = await jsonLines(script, [
      network,
      networks.floats,
      networks.eight,
      threads,
      rounds,
      profile,
      work,
      ...imagePaths,
    ]);
    const { times } = printed as { times: Record<'floats' | 'eight', number[]> };
    const both = async (at: number) =>
      Promise.all([plane(path.join(work, `${at}.floats`)), plane(path.join(work, `${at}.eight`))]);
    const rows: (MatteDifference & { readonly image: string; readonly at: number })[] = [];
    for (const [at, image] of imagePaths.entries()) {
      const [floats, eight] = await both(at);
      rows.push({ image, at, ...matteDifference(floats, eight) });
    }
    const sorted = [...rows].sort((a, b) => b.mean - a.mean);
    const strips: Strips['rows'][number][] = [];
    for (const { image, at, mean: off, edge } of sorted.slice(0, worst)) {
      const [floats, eight] = await both(at);
      strips.push({
        label: path.basename(image),
        note: `mean ${off.toFixed(4)}, where the matte is between ${edge.toFixed(4)}`,
        images: await stripOf(image, floats, eight, input),
      });
    }
    const profileFile = (await readdir(work)).find((name) => name.startsWith('profile'));
    const operators = byOperator(
      profileFile ? (JSON.parse(await readFile(path.join(work, profileFile), 'utf8')) as Event[]) : [],
    );
    const total = sum(operators.map(([, ms]) => ms));
    const integer = sum(operators.filter(([name]) => name === 'QLinearConv').map(([, ms]) => ms));
    const speeds: Speed[] = [];
    for (const count of new Set(counts)) {
      progress(`${forms.join(', ')} in turn on ${count} threads`);
      const [found] = await jsonLines(childScript('formsRun.js'), [network, count, rounds, ...forms]);
      speeds.push({ threads: count, times: found as Speed['times'] });
    }
    const used: Partial<Record<PreparedForm, number>> = {};
    for (const name of memory ? forms : []) {
      progress(`memory after ${runs} runs, ${name}`);
      const measure = (count: number) =>
        jsonLines(childScript('engineMemory.js'), [network, files[name], threads, count]);
      await measure(0); // makes the optimised copy
      const [result] = await measure(runs);
      const { before, after } = result as EngineMemory;
      used[name] = after - before;
    }
    const table: Table = {
      kind: 'table',
      title: 'Image by image, the largest difference first',
      columns: ['image', 'mean', 'between', 'share between', 'largest', 'kept more'],
      rows: sorted.map(({ image, mean: off, edge, edgeShare, largest, bias }) => [
        path.basename(image),
        off,
        edge,
        edgeShare,
        largest,
        bias,
      ]),
      note: 'Differences of the alpha 0 to 1; "between" where the float network gives 0.02 to 0.98.',
    };
    return {
      settings: { network, rounds, images: imagePaths.length, threads, runs },
      figures: [
        measured('precision.floats.run', 'run, floats', 'ms', times.floats),
        measured('precision.eight.run', 'run, 8 bits', 'ms', times.eight),
        computed(
          'precision.run',
          'run, 8 bits against floats',
          '×',
          median(times.eight) / median(times.floats),
          { atMost: 0.42 },
        ),
        computed('precision.mean', 'mean difference of alpha', '', mean(rows.map((row) => row.mean)), {
          atMost: 0.003,
        }),
        computed(
          'precision.worst',
          'mean difference, worst image',
          '',
          Math.max(...rows.map((row) => row.mean)),
          { atMost: 0.012 },
        ),
        computed(
          'precision.between',
          'mean difference where 0.02 < alpha < 0.98',
          '',
          mean(rows.map((row) => row.edge)),
          { atMost: 0.03 },
        ),
        computed('precision.integer', 'share of a run in integer convolutions', '', integer / total),
        ...speeds.flatMap(ratiosOf),
        ...Object.entries(used).map(([name, megabytes]) =>
          computed(
            `precision.${name}.memory`,
            `memory after ${runs} runs, ${FORM_TITLES[name as PreparedForm]}`,
            'MB',
            megabytes,
            name === 'own' ? { atMost: 180 } : undefined,
          ),
        ),
      ],
      parts: [
        formsTable(speeds, used),
        {
          kind: 'bars',
          title: 'One run in 8 bits, by operator',
          unit: 'ms',
          bars: operators.slice(0, 12).map(([label, value]) => ({ label, value })),
        },
        table,
        { kind: 'strips', title: 'The largest differences', rows: strips },
      ],
    };
  } finally {
    await rm(work, { recursive: true });
  }
}
