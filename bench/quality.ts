import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { type Command, InvalidArgumentError } from 'commander';
import { type BenchCommand, type Context, values } from './lib/command.ts';
import type { Figure, Outcome, Part, Settings } from './lib/outcome.ts';
import { preparedNetwork, testAddon } from './lib/paths.ts';
import { openTarget, type Target } from './lib/target.ts';
import { measureAgreement, readManifest, reportAgreement } from './quality/agreement.js';
import { openKernels } from './quality/kernels.js';
import { openNetwork } from './quality/network.js';
import { openScores } from './quality/pool.js';
import { measureSimulated, reportSimulated } from './quality/simulated.js';
import { openKnown, within } from './quality/sources.js';
import { measureWhole, PLAIN, reportWhole } from './quality/whole.js';

const STAGES = ['whole', 'refine'] as const;
type Stage = (typeof STAGES)[number];

/** A server with different settings than the first: `NAME:SETTING=VALUE,SETTING=VALUE`. */
interface Variant {
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
}

interface QualityOptions {
  readonly url?: string;
  readonly key?: string;
  readonly stages: readonly Stage[];
  readonly mp: readonly number[];
  readonly count?: number;
  readonly seed: number;
  readonly kinds?: readonly string[];
  readonly cutouts?: string;
  readonly photos?: string;
  readonly images?: string;
  readonly alphas?: string;
  readonly foregrounds?: string;
  readonly trimaps?: string;
  readonly manifest?: string;
  readonly variant: readonly Variant[];
  readonly scales: readonly number[];
  readonly sigmas: readonly number[];
  readonly network?: string;
  readonly strips: number;
  readonly seconds: number;
}

/** Contribution of a part of the measurement to the outcome. */
interface Piece {
  readonly figures: readonly Figure[];
  readonly parts: readonly Part[];
  readonly notes: readonly string[];
}

const words = (text: string): readonly string[] => text.split(',').map((word) => word.trim());

function variant(text: string, others: readonly Variant[] = []): readonly Variant[] {
  const [, name, settings] = /^([\w .+-]+):((?:[A-Z_0-9]+=[^,]*)(?:,[A-Z_0-9]+=[^,]*)*)$/.exec(text) ?? [];
  if (name === undefined || settings === undefined)
    throw new InvalidArgumentError('It must be NAME:SETTING=VALUE[,SETTING=VALUE…].');
  const pairs = settings.split(',').map((pair) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at), pair.slice(at + 1)] as const;
  });
  return [...others, { name, env: Object.fromEntries(pairs) }];
}

export const command: BenchCommand = {
  name: 'quality',
  title: 'Quality of mattes and colours',
  summary: 'cut-outs against exact truth, and against what others make of the same photos',
  shared: { seconds: 1800, target: true },
  options: (command: Command) =>
    command
      .option(
        '--stages <list>',
        'whole (over HTTP, real network), refine (alone, network simulated)',
        values.words(...STAGES),
        [...STAGES],
      )
      .option('--mp <list>', 'megapixels of generated images', values.numbers, [4])
      .option('--count <n>', 'images of each size (default: one of each kind, or all)', values.whole)
      .option('--seed <n>', 'of the generator', values.whole, 1)
      .option('--kinds <list>', 'of generated images: hair, fur, leaves, mesh, glass, …', words)
      .option('--cutouts <folder>', 'RGBA images with their own alpha, laid over --photos, instead')
      .option('--photos <folder>', 'backgrounds for --cutouts')
      .option('--images <folder>', 'images to cut out, instead of generated ones …')
      .option('--alphas <folder>', '… with their true alphas: same names, gray or RGBA')
      .option('--foregrounds <folder>', '… and true colours, if they are known')
      .option('--trimaps <folder>', '… and trimaps: edges count where they are neither 0 nor 255')
      .option('--manifest <file>', 'CSV of photos and others’ mattes: agreement with those instead of truth')
      .option(
        '--variant <name:SETTINGS>',
        'measure a server with other settings too: best:CUTOUT_PROFILE=best (may be repeated)',
        variant,
        [],
      )
      .option('--scales <list>', 'reductions of the simulated network', values.wholes, [4, 8])
      .option('--sigmas <list>', 'its blur, in its pixels', values.numbers, [0.8])
      .option('--network <file>', 'prepared network that is enlarged plainly (default: the one pulled)')
      .option('--strips <n>', 'images to show of each set', values.whole, 12),
  all: { full: { mp: [4, 12] }, quick: { mp: [1] } },
};

/** The requested servers, the plain one first. */
async function openTargets(
  options: QualityOptions,
): Promise<readonly (Target & { readonly name: string })[]> {
  const { url, key, variant: variants } = options;
  const address = { ...(url !== undefined && { url }), ...(key !== undefined && { key }) };
  const opened = [{ name: 'cutout', ...(await openTarget(address)) }];
  if (url !== undefined && variants.length > 0)
    throw new Error('--variant starts servers: it cannot go with --url');
  for (const { name, env } of variants) opened.push({ name, ...(await openTarget({}, { ...env })) });
  return opened;
}

async function agreement(manifest: string, options: QualityOptions, context: Context): Promise<Piece> {
  const photos = (await readManifest(manifest)).slice(0, options.count);
  const targets = await openTargets({ ...options, variant: [] });
  try {
    const client = targets[0]?.client;
    const rows = await measureAgreement({
      photos: within(options.seconds, photos, context),
      client,
      strips: options.strips,
      progress: context.progress,
    });
    return reportAgreement(rows) as Piece;
  } finally {
    await Promise.all(targets.map((target) => target.close()));
  }
}

async function whole(options: QualityOptions, scores: object, context: Context): Promise<Piece> {
  const { progress } = context;
  const file = options.network ?? preparedNetwork();
  const network = existsSync(file) ? await openNetwork({ file, threads: availableParallelism() }) : undefined;
  const targets = await openTargets(options);
  try {
    const { images } = openKnown(options);
    const rows = await measureWhole({
      images: within(options.seconds, images, context),
      targets: targets.map(({ name, client }) => ({ name, client })),
      network,
      scores,
      strips: options.strips,
      progress,
    });
    const methods = [...targets.map(({ name }) => name), ...(network ? [PLAIN] : [])];
    const piece = reportWhole(rows, methods) as Piece;
    const missing = `The network is not on this machine (${file}): results stand alone, without plain enlarging.`;
    return network ? piece : { ...piece, notes: [...piece.notes, missing] };
  } finally {
    await Promise.all(targets.map((target) => target.close()));
    await network?.close();
  }
}

async function refine(options: QualityOptions, scores: object, context: Context): Promise<Piece> {
  const { progress } = context;
  const kernels = openKernels(testAddon, availableParallelism());
  if (!kernels) {
    const note = 'Refinement alone was left out: it needs the test addon (`npm run setup -- --tests`).';
    return { figures: [], parts: [], notes: [note] };
  }
  const { scales, sigmas, strips } = options;
  // One size is enough: the scales define the ratio of image and network.
  const { images } = openKnown({ ...options, mp: options.mp.slice(0, 1) });
  return reportSimulated(
    await measureSimulated({
      images: within(options.seconds, images, context),
      kernels,
      scales,
      sigmas,
      scores,
      strips,
      progress,
    }),
  ) as Piece;
}

const shownSettings = (options: QualityOptions): Settings =>
  Object.fromEntries(
    Object.entries({
      images: options.manifest ?? openKnown(options).label,
      stages: options.manifest ? 'agreement' : options.stages.join(', '),
      'megapixels drawn': options.images || options.manifest ? undefined : options.mp.join(', '),
      seed: options.images || options.manifest ? undefined : options.seed,
      server: options.url ?? 'started here',
      variants: options.variant
        .map(({ name, env }) => `${name}: ${Object.entries(env).map((pair) => pair.join('='))}`)
        .join('; '),
    }).filter((pair): pair is [string, string | number] => pair[1] !== undefined && pair[1] !== ''),
  );

export async function run(options: QualityOptions, context: Context): Promise<Outcome> {
  const settings = shownSettings(options);
  if (options.manifest !== undefined)
    return { settings, ...(await agreement(options.manifest, options, context)) };
  const scores = openScores(Math.min(4, availableParallelism()));
  try {
    const pieces: Piece[] = [];
    if (options.stages.includes('whole')) pieces.push(await whole(options, scores, context));
    if (options.stages.includes('refine')) pieces.push(await refine(options, scores, context));
    return {
      settings,
      figures: pieces.flatMap(({ figures }) => figures),
      parts: pieces.flatMap(({ parts }) => parts),
      notes: pieces.flatMap(({ notes }) => notes),
    };
  } finally {
    await scores.close();
  }
}
