import { access, constants, rm } from 'node:fs/promises';
import type { Form } from '../compiler/form.ts';
import type { EngineConfig } from '../config/engine.ts';
import type { Engine } from '../engine/engine.ts';
import { networkOutput } from '../engine/networkOutput.ts';
import { codeOf, exists } from '../files.ts';
import { decode } from '../image/decode.ts';
import { probe } from '../image/probe.ts';
import { sampleImage } from '../image/sampleImage.ts';
import { resultSize, sizeLimits } from '../image/size.ts';
import { contractLimits } from '../image/types.ts';
import { fastest, type KeptChoice, textOf } from '../models/choice.ts';
import { ensureNetwork } from '../models/ensure.ts';
import { networkFiles } from '../models/layout.ts';
import { preparedFacts } from '../models/locate.ts';
import type { Manifest } from '../models/manifest.ts';
import { rememberRun } from '../models/measured.ts';
import { type Choices, formFor, type PrecisionChoice } from '../models/precision.ts';
import { checkMemory, type MemoryRoom } from './checkMemory.ts';
import { type FetchOptions, loadWithNotices } from './openNetwork.ts';

/** A network whose forms are measured. */
type MeasuredNetwork = Readonly<{ manifest: Manifest; choices: Choices; kept: KeptChoice }>;

/** Returns a function that makes the pixels of the drawn image, which a run takes. */
export async function drawnPixels() {
  const file = await sampleImage();
  const header = await probe(file, contractLimits);
  return () => decode(file, header, resultSize(header, sizeLimits.preview));
}

/**
 * Prepares the forms that a network may be computed in, measures them on the CPU and keeps the choice of the fastest; the others'
 * files that were not there before are deleted. A network that is not there, or whose folder cannot be written, is not measured: the
 * form that is prepared is taken. `engine` has no network before and after.
 */
export async function measurePrecision(
  { manifest, choices, kept }: MeasuredNetwork,
  engine: Pick<Engine, 'load' | 'matte' | 'unload' | 'stats'>,
  { modelsDir }: Pick<EngineConfig, 'modelsDir'>,
  { pull, observer, signal, room }: FetchOptions & { readonly room: MemoryRoom },
): Promise<PrecisionChoice> {
  const { name } = manifest;
  const filesOf = (choice: PrecisionChoice) => networkFiles(modelsDir, manifest, formFor(choice));
  const [usual] = choices;
  const there: PrecisionChoice[] = [];
  for (const choice of choices) if (await exists(filesOf(choice).prepared)) there.push(choice);
  const { source, folder } = filesOf(usual);
  const writable = await access(folder, constants.W_OK).then(
    () => true,
    (error: unknown) => pull && codeOf(error) === 'ENOENT',
  );
  if (!writable || !(pull || (await exists(source)))) return there[0] ?? usual;

  const load = loadWithNotices(engine, observer);
  const pixels = await drawnPixels();
  const runs = new Map<Form, number>();
  let leftOut = false;
  const run = async (choice: PrecisionChoice) => {
    const { operators } = choice;
    const form = formFor(choice);
    const place = { modelsDir, device: 'cpu', form, pull } as const;
    const spec = await ensureNetwork(name, { ...place, observer, signal });
    try {
      checkMemory({ name, form }, (await preparedFacts(name, place)).memory, room);
    } catch (error) {
      leftOut = true;
      throw error;
    }
    observer.progress({ phase: 'measure', network: name });
    await load({ ...spec, ...(operators !== undefined && { operators }) });
    try {
      const image = await pixels();
      const before = process.cpuUsage();
      const { values, inferMs } = await networkOutput(engine, name, image);
      const { user, system } = process.cpuUsage(before);
      runs.set(form, Math.min(inferMs, runs.get(form) ?? inferMs));
      return { ms: (user + system) / 1000, output: values };
    } finally {
      await engine.unload();
    }
  };
  let chosen: PrecisionChoice | undefined;
  try {
    chosen = await fastest(choices, run, { notice: observer.notice, signal });
  } finally {
    const used = formFor(chosen ?? usual);
    for (const choice of choices.filter((each) => formFor(each) !== used && !there.includes(each)))
      for (const file of [filesOf(choice).record, filesOf(choice).prepared]) await rm(file, { force: true });
  }
  // The usual one could not be run: its opening says why.
  if (!chosen) return usual;
  await kept.keep(chosen, leftOut);
  const runMs = runs.get(formFor(chosen));
  if (runMs !== undefined)
    await rememberRun(modelsDir, manifest, { device: 'cpu', file: filesOf(chosen).prepared, runMs });
  observer.notice(`${name} is computed in ${textOf(chosen)} (${chosen.because}).`);
  return chosen;
}
