import path from 'node:path';
import type { Config } from '../config/readConfig.ts';
import { plainRequest } from '../cutout/request.ts';
import { loadAddon } from '../engine/addon.ts';
import { EngineError, type Pixels } from '../engine/types.ts';
import { AppError, UserError } from '../errors.ts';
import { writeAtomically } from '../files.ts';
import { decode } from '../image/decode.ts';
import { probe } from '../image/probe.ts';
import { sampleImage } from '../image/sampleImage.ts';
import { resultSize, sizeLimits } from '../image/size.ts';
import type { ProbeLimits } from '../image/types.ts';
import { maxFileBytes } from '../inputLimits.ts';
import {
  checkName,
  describeAdded,
  type Inspected,
  inspectFile,
  keepManifest,
  nameFrom,
} from '../models/add.ts';
import type { CatalogueEntry } from '../models/catalogue.ts';
import { ModelError } from '../models/error.ts';
import { type Guess, NORMALISATIONS, type Normalisation } from '../models/guess.ts';
import { networkFiles } from '../models/layout.ts';
import { floatFormFor, specOf } from '../models/locate.ts';
import type { Manifest } from '../models/manifest.ts';
import { measuredRun, rememberRun } from '../models/measured.ts';
import type { Observer } from '../models/observer.ts';
import { pullDependencies, pullNetwork, removeNetwork } from '../models/pull.ts';
import { readRecord } from '../models/record.ts';
import { type Trial, tryNetwork } from '../models/trial.ts';
import { RequestTelemetry } from '../ops/telemetry.ts';
import { checkMemory, type MemoryRoom, roomFor } from '../server/checkMemory.ts';
import { configureLocalImages } from '../server/images.ts';
import { openCutout } from '../server/openCutout.ts';
import { deviceIdsOf, startEngine } from '../server/openEngine.ts';
import { type Output, progressOn, withProgress } from './modelsProgress.ts';
import { readInput, unreadable } from './run/files.ts';

type Size = Readonly<{ width: number; height: number }>;
type Channels = Manifest['input']['mean'];

/** Options of `cutout models add`: each one that is given is not guessed. */
export interface AddOptions {
  readonly name?: string;
  readonly title?: string;
  readonly size?: Size;
  readonly normalise?: Normalisation;
  readonly mean?: Channels;
  readonly std?: Channels;
  readonly output?: Manifest['output'];
  readonly trainedOn: Manifest['trainedOn'];
  readonly licence?: string;
  /** Image to check the network on; default: a built-in one. */
  readonly photo?: string;
  /** Accepts uncertain guesses. */
  readonly yes: boolean;
}

interface AddStreams {
  readonly out: Output;
  readonly signal: AbortSignal;
}

const sizeText = ({ width, height }: Size) => `${width}x${height}`;

/** What was given, else a certain or accepted guess. Throws MODEL_UNDECIDED, which says how to give another value. */
function decide<T>(
  given: T | undefined,
  { value, sure, because }: Guess<T>,
  { title, option, text, yes }: { title: string; option: string; text: (value: T) => string; yes: boolean },
): { readonly value: T; readonly because: string } {
  if (given !== undefined) return { value: given, because: 'given' };
  if (sure || yes) return { value, because };
  throw new ModelError(
    'MODEL_UNDECIDED',
    `The file does not say the ${title}; probably ${text(value)}, because ${because}. Pass ${option}, or --yes to accept the guess.`,
  );
}

/** The image to check a network on, as a file and decoded. */
async function readCheckImage(
  photo: string | undefined,
  limits: ProbeLimits,
): Promise<{ readonly file: Uint8Array; readonly pixels: Pixels }> {
  try {
    const file = photo === undefined ? await sampleImage() : await readInput(photo, maxFileBytes);
    const header = await probe(file, limits);
    return { file, pixels: await decode(file, header, resultSize(header, sizeLimits.preview)) };
  } catch (error) {
    throw unreadable('photo', photo ?? 'drawn for the check', error);
  }
}

/** A GPU with CUDA may run the network as a program of another output, so it is tried on the CPU. */
const deviceOfTrial = ({ device }: Config['engine']) => (device === 'cuda' ? 'cpu' : device);

/** Runs the prepared network once. Rejects with ModelError or EngineError. */
async function check(
  entry: CatalogueEntry,
  stated: { readonly value: Manifest['output'] | undefined; readonly because: string | undefined },
  pixels: Pixels,
  { engine: config }: Config,
  room: MemoryRoom,
  observer: Observer,
): Promise<Trial & { readonly file: string }> {
  const { manifest } = entry;
  const device = deviceOfTrial(config);
  const form = floatFormFor(manifest, device);
  const files = networkFiles(config.modelsDir, manifest, form);
  const { name } = manifest;
  if (device === 'cpu') checkMemory({ name, form }, (await readRecord(files))?.memory, room);
  const file = files.prepared;
  const deviceIds = deviceIdsOf(config).slice(0, 1);
  const engine = await startEngine(loadAddon(), { ...config, device, deviceIds, batchMax: 1 }, observer);
  try {
    const spec = {
      ...specOf(manifest, file),
      fp16: form === 'tensorrt' && manifest.file.precision === 'fp16',
    };
    return { ...(await tryNetwork(engine, spec, stated.value, stated.because, pixels)), file };
  } finally {
    await engine.close(0);
  }
}

/** Cuts out the image as a server would, and writes the result beside the network. Rejects with ModelError or EngineError. */
async function writePreview(
  entry: CatalogueEntry,
  image: Uint8Array,
  limits: ProbeLimits,
  config: Config,
  { out, signal }: AddStreams,
): Promise<string> {
  const { name } = entry.manifest;
  const alone = { ...config, engine: { ...config.engine, model: name, secondModel: 'off' } };
  const opened = await withProgress(out, name, (observer) =>
    openCutout(alone, { limits, jobs: 1, pull: false, observer, signal }),
  );
  try {
    const { bytes } = await opened.cutout(
      { ...plainRequest, source: { kind: 'bytes', bytes: image }, format: 'png', typeLevel: 'none' },
      { accountId: 'local', requestId: 'add', signal, telemetry: new RequestTelemetry() },
    );
    const file = path.join(entry.folder, 'preview.png');
    await writeAtomically(file, bytes, 'replace');
    return file;
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    const message = `The image cannot be cut out with the network: ${cause.detail ?? cause.title} Check the normalisation, or give an image with a subject (--photo).`;
    throw new ModelError('MODEL_CHECK', message, { cause });
  } finally {
    await opened.close();
  }
}

/** What the options or the file say about the input. Throws ModelError `MODEL_UNDECIDED`. */
function decideInput(
  { size: givenSize, mean, std, normalise, yes }: AddOptions,
  guesses: Inspected['guesses'],
) {
  const title = 'input size';
  const size = decide(givenSize, guesses.size, {
    title,
    option: '--size (WIDTHxHEIGHT)',
    text: sizeText,
    yes,
  });
  if (mean && std) {
    const title = `mean ${mean.join(', ')}, deviation ${std.join(', ')}`;
    return { size, normalisation: { value: { mean, std }, title, because: 'given' } };
  }
  const option = `--normalise (${Object.keys(NORMALISATIONS).join(', ')})`;
  const wanted = { title: 'normalisation', option, text: (value: Normalisation) => value, yes };
  const { value, because } = decide(normalise, guesses.normalisation, wanted);
  return { size, normalisation: { value: NORMALISATIONS[value], title: value, because } };
}

/** Throws UserError for options that contradict each other. */
function checkOptions({ mean, std, normalise }: AddOptions): void {
  if ((mean === undefined) !== (std === undefined)) throw new UserError('--mean and --std belong together.');
  if (mean !== undefined && normalise !== undefined)
    throw new UserError('Give either --normalise or --mean and --std.');
}

/** Says which size may be wrong where the network failed on one that was not certain. */
function withSizeHint(error: unknown, { guesses }: Inspected, size: Size): unknown {
  if (guesses.size.sure || !(error instanceof EngineError)) return error;
  const hint = `Such a network may need another --size than ${sizeText(size)}, such as multiples of 32.`;
  return new EngineError(error.code, `${error.message}. ${hint}`, { cause: error });
}

/**
 * `cutout models add`: describes a network of the operator's own, checks it on an image and keeps it in the models
 * folder. A rejected network leaves no files behind. Rejects with ModelError, EngineError or UserError.
 */
export async function addNetwork(
  given: string,
  options: AddOptions,
  config: Config,
  streams: AddStreams,
): Promise<void> {
  const { out, signal } = streams;
  const { modelsDir } = config.engine;
  const name = options.name ?? nameFrom(given);
  const room = roomFor(config.limits.memory);
  await checkName(modelsDir, name);
  checkOptions(options);
  const limits = configureLocalImages();
  const image = await readCheckImage(options.photo, limits);
  const inspected = await inspectFile(given);
  const { size, normalisation } = decideInput(options, inspected.guesses);
  const { title = path.basename(given), trainedOn, licence } = options;
  const input = { ...size.value, ...normalisation.value };
  const describe = (output: Manifest['output']) =>
    describeAdded(modelsDir, inspected, { name, title, input, trainedOn, licence, output });
  // The check says what the output is, before the manifest is kept.
  const draft = describe('probability');
  const device = deviceOfTrial(config.engine);
  const form = floatFormFor(draft.manifest, device);
  const pull = { modelsDir, form, dependencies: pullDependencies(), signal };
  try {
    await withProgress(out, name, (observer) => pullNetwork(draft, { ...pull, observer }));
    const guessed = inspected.guesses.output;
    const stated =
      options.output === undefined
        ? { value: guessed.value, because: guessed.because }
        : { value: options.output, because: undefined };
    const trial = await withProgress(out, name, (observer) =>
      check(draft, stated, image.pixels, config, room, observer),
    ).catch((error: unknown) => {
      throw withSizeHint(error, inspected, size.value);
    });
    const entry = describe(trial.output);
    await keepManifest(entry);
    await rememberRun(modelsDir, entry.manifest, { device, file: trial.file, runMs: trial.runMs });
    const preview = await writePreview(entry, image.file, limits, config, streams);
    // The preview has measured the forms that it may be in.
    const run = (await measuredRun(modelsDir, entry.manifest, device)) ?? { ...trial, precision: form };
    out.write(
      [
        `${name} was added to ${modelsDir}; one run takes ${run.runMs.toFixed(0)} ms in ${run.precision} on ${device}.`,
        `  input          ${sizeText(size.value)} (${size.because})`,
        `  normalisation  ${normalisation.title} (${normalisation.because})`,
        `  output         ${trial.output} (${options.output === undefined ? guessed.because : 'given'})`,
        `  preview        ${preview}`,
        'Look at the preview: wrong guesses give a wrong matte without an error.',
        `Use it: CUTOUT_MODEL=${name}, or \`cutout run --model ${name}\`.\n`,
      ].join('\n'),
    );
  } catch (error) {
    // Another process added the name first and owns the folder.
    if (!(error instanceof ModelError && error.code === 'MODEL_EXISTS'))
      await removeNetwork(draft, { ...pull, observer: progressOn(out, name) });
    throw error;
  }
}
