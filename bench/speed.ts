import { setTimeout } from 'node:timers/promises';
import type { Command } from 'commander';
import { type Answer, expectOk } from './lib/client.ts';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { openImages } from './lib/images.ts';
import { computed, type Figure, measured, type Outcome, type Part } from './lib/outcome.ts';
import { median, sum } from './lib/stats.ts';
import { openTarget } from './lib/target.ts';

/** After an answer of megabytes this process works on for some 20 ms: no part of the next request. */
const SETTLE_MS = 100;

const FORMATS = ['png', 'jpg', 'webp', 'zip'] as const;
type Format = (typeof FORMATS)[number];

interface SpeedOptions extends Shared {
  readonly mp: readonly number[];
  readonly formats: readonly Format[];
}

export const command: BenchCommand = {
  name: 'speed',
  title: 'Speed, stage by stage',
  summary: 'whole requests over HTTP, stage by stage, for sizes and formats',
  shared: { rounds: 3, seconds: 240, target: true, images: true },
  options: (command: Command) =>
    command
      .option('--mp <list>', 'megapixels of the uploads', values.numbers, [0.25, 1, 4, 12, 25, 50])
      .option('--formats <list>', 'of the results', values.words(...FORMATS), [...FORMATS]),
  all: { quick: { mp: [1, 12], formats: ['png', 'jpg'], rounds: 1 } },
};

/** The server's names of the stages, in execution order, and their names in the report. */
const STAGES = [
  ['decode', 'decode'],
  ['queue', 'wait'],
  ['prepare', 'prepare'],
  ['infer', 'run'],
  ['matte', 'refine'],
  ['compose', 'compose'],
  ['encode', 'encode'],
] as const;

interface Case {
  readonly name: string;
  readonly label: string;
  readonly megapixels: number;
  readonly format: Format;
  readonly size: string;
  readonly answers: Answer[];
}

function casesOf({ mp, formats }: SpeedOptions): readonly Case[] {
  const full = mp.flatMap((megapixels) =>
    formats.map((format) => ({
      name: `${megapixels}mp.${format}`,
      label: `${megapixels} MP ${format}`,
      megapixels,
      format,
      size: '50MP',
      answers: [],
    })),
  );
  const [first = 'png'] = formats;
  const previews = mp
    .filter((megapixels) => megapixels >= 1)
    .map((megapixels) => ({
      name: `${megapixels}mp.preview.${first}`,
      label: `${megapixels} MP preview`,
      megapixels,
      format: first,
      size: 'preview',
      answers: [],
    }));
  return [...full, ...previews];
}

/** Rounds alternate between all cases, so that a drift of the machine affects all equally. */
async function measureCases(
  cases: readonly Case[],
  options: SpeedOptions,
  { progress }: Context,
): Promise<{ readonly server: string; readonly rounds: number; readonly names: readonly string[] }> {
  const { rounds, seconds, mp, images } = options;
  const imageSet = openImages(images);
  const uploads = new Map<number, Buffer>();
  for (const megapixels of mp) {
    progress(`making an image of ${megapixels} MP`);
    uploads.set(megapixels, await imageSet.jpeg(megapixels));
  }
  const upload = (megapixels: number) => uploads.get(megapixels) ?? Buffer.alloc(0);
  const { client, server, close } = await openTarget(options);
  try {
    progress('warming up');
    expectOk(await client.cutout(upload(Math.min(...mp)), { size: '50MP', format: 'png' }));
    const begin = performance.now();
    let round = 0;
    while (round < rounds && (round === 0 || performance.now() - begin < seconds * 1000)) {
      round++;
      for (const { label, megapixels, size, format, answers } of cases) {
        progress(`round ${round} of ${rounds}, ${label}`);
        answers.push(expectOk(await client.cutout(upload(megapixels), { size, format })));
        await setTimeout(SETTLE_MS);
      }
    }
    return { server, rounds: round, names: imageSet.names.slice(0, 1) };
  } finally {
    await close();
  }
}

/** Medians of a case: the request, its stages by their names in the report, and the rest. */
interface Staged extends Case {
  readonly request: number;
  readonly stages: ReadonlyMap<string, number>;
}

/** `other`: upload, ledger, HTTP and the client. Unknown stages keep the server's name. */
function stagedOf(one: Case): Staged {
  const { answers } = one;
  const titles: ReadonlyMap<string, string> = new Map(STAGES);
  const names = new Set([...titles.keys(), ...answers.flatMap(({ stages }) => Object.keys(stages))]);
  const stages = new Map(
    [...names].map((name) => [
      titles.get(name) ?? name,
      median(answers.map((answer) => answer.stages[name] ?? 0)),
    ]),
  );
  stages.set('other', median(answers.map(({ ms, stages }) => Math.max(0, ms - sum(Object.values(stages))))));
  return { ...one, request: median(answers.map(({ ms }) => ms)), stages };
}

/** A preview's time relative to the full size of the same image in the same format. */
const previewFigures = (staged: readonly Staged[]): readonly Figure[] =>
  staged.flatMap(({ size, megapixels, format, request }) => {
    const full = staged.find(
      (other) => other.size !== 'preview' && other.megapixels === megapixels && other.format === format,
    );
    if (size !== 'preview' || !full) return [];
    const title = `preview against full size, ${megapixels} MP`;
    return [
      computed(`speed.${megapixels}mp.preview_over_full`, title, '×', request / full.request, {
        atMost: 0.5,
      }),
    ];
  });

function figuresOf(staged: readonly Staged[], parts: readonly string[]): readonly Figure[] {
  const requests = staged.map(({ name, label, answers }) => {
    const times = answers.map(({ ms }) => ms);
    return measured(`speed.${name}.request`, label, 'ms', times);
  });
  const stages = staged.flatMap(({ name, label, stages: own }) =>
    parts.map((part) => computed(`speed.${name}.${part}`, `${label}, ${part}`, 'ms', own.get(part) ?? 0)),
  );
  return [...previewFigures(staged), ...requests, ...stages];
}

function partsOf(
  staged: readonly Staged[],
  parts: readonly string[],
  formats: readonly Format[],
): readonly Part[] {
  const rows = staged.map(({ label, stages }) => ({
    label,
    values: parts.map((part) => stages.get(part) ?? 0),
  }));
  return [
    {
      kind: 'table',
      title: 'Milliseconds of a request by stage',
      columns: ['upload', 'request', ...parts, 'all but run', 'result kB'],
      rows: staged.map(({ label, request, stages, answers }) => [
        label,
        request,
        ...parts.map((part) => stages.get(part) ?? 0),
        request - (stages.get('run') ?? 0),
        (answers[0]?.body.length ?? 0) / 1000,
      ]),
      note: 'run: the network itself. refine: everything from its answer to the matte with clean colours. other: upload, books, HTTP on both sides.',
    },
    { kind: 'stacked', title: 'Whole requests', unit: 'ms', parts, rows },
    { kind: 'stacked', title: 'The same without the network', unit: 'ms', parts, omit: ['run'], rows },
    {
      kind: 'lines',
      title: 'Time against size',
      x: { label: 'megapixels of the upload', scale: 'log' },
      y: { label: 'ms a request' },
      series: formats.map((format) => ({
        name: format,
        dots: true,
        points: staged
          .filter((one) => one.format === format && one.size !== 'preview')
          .map(({ megapixels, request }) => [megapixels, request] as const),
      })),
    },
  ];
}

export async function run(options: SpeedOptions, context: Context): Promise<Outcome> {
  const cases = casesOf(options);
  const { server, rounds, names } = await measureCases(cases, options, context);
  const staged = cases.map(stagedOf);
  const all = [...new Set(staged.flatMap(({ stages }) => [...stages.keys()]))];
  const parts = all
    .filter((part) => staged.some(({ stages }) => (stages.get(part) ?? 0) > 0))
    .sort((a, b) => Number(a === 'other') - Number(b === 'other'));
  return {
    settings: { server, images: names.join(', '), 'rounds done': rounds },
    figures: figuresOf(staged, parts),
    parts: partsOf(staged, parts, options.formats),
  };
}
