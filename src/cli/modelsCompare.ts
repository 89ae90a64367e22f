import { stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Config } from '../config/readConfig.ts';
import { plainRequest } from '../cutout/request.ts';
import { UserError } from '../errors.ts';
import { checkWritable, codeOf, exists, reasonToWrite, writeAtomically } from '../files.ts';
import { inputThumbnail, resultThumbnail } from '../image/thumbnail.ts';
import type { ProbeLimits } from '../image/types.ts';
import { maxFileBytes } from '../inputLimits.ts';
import { type CatalogueEntry, catalogueWith, listCatalogue } from '../models/catalogue.ts';
import { networkFiles } from '../models/layout.ts';
import { findFor } from '../models/locate.ts';
import { rememberRun } from '../models/measured.ts';
import { RequestTelemetry } from '../ops/telemetry.ts';
import { configureLocalImages } from '../server/images.ts';
import { openCutout } from '../server/openCutout.ts';
import {
  type ComparedNetwork,
  type ComparedPhoto,
  type ComparedResult,
  comparisonPage,
} from './modelsPage.ts';
import { type Output, progressOn } from './modelsProgress.ts';
import { median } from './output.ts';
import { photoFault, reasonOf } from './photoFault.ts';
import { readInput } from './run/files.ts';

export interface CompareOptions {
  readonly out: string;
  /** Replaces an existing page. */
  readonly force: boolean;
  /** Default: all that are installed. */
  readonly networks?: readonly string[];
}

interface CompareStreams {
  readonly out: Output;
  /** Progress. */
  readonly err: Output;
  readonly signal: AbortSignal;
}

/** Pixels of the longer side of an embedded image. */
const maxSide = 720;

interface Photo extends ComparedPhoto {
  readonly file: Uint8Array;
}

async function readPhoto(file: string, limits: ProbeLimits): Promise<Photo> {
  try {
    const bytes = await readInput(file, maxFileBytes);
    return {
      name: path.basename(file),
      file: bytes,
      image: await inputThumbnail(bytes, limits, maxSide),
    };
  } catch (error) {
    throw photoFault(file, error);
  }
}

/** Networks that make mattes and whose files are here, or those that are named. Rejects if one of these is not here. */
async function chosenEntries(
  modelsDir: string,
  names: readonly string[] | undefined,
): Promise<CatalogueEntry[]> {
  const catalogue = catalogueWith(modelsDir);
  const isHere = ({ manifest }: CatalogueEntry) => exists(networkFiles(modelsDir, manifest).source);
  const found: CatalogueEntry[] = [];
  if (names !== undefined) {
    for (const name of names) {
      const entry = await findFor(name, { modelsDir });
      if (!(await isHere(entry)))
        throw new UserError(
          `The network ${name} is not in ${modelsDir}. Run \`cutout models pull ${name}\`.`,
        );
      found.push(entry);
    }
    return found;
  }
  for (const entry of await listCatalogue(catalogue))
    if (entry.manifest.role === 'matte' && (await isHere(entry))) found.push(entry);
  if (found.length > 0) return found;
  throw new UserError(`No network is in ${modelsDir}. Run \`cutout models pull\`.`);
}

async function runNetwork(
  { manifest }: CatalogueEntry,
  photos: readonly Photo[],
  config: Config,
  limits: ProbeLimits,
  { err, signal }: CompareStreams,
): Promise<Pick<ComparedNetwork, 'fault' | 'results'>> {
  const { name } = manifest;
  const engine = { ...config.engine, model: name, secondModel: 'off' };
  const observer = progressOn(err, name);
  const results: ComparedResult[] = [];
  try {
    const opened = await openCutout(
      { ...config, engine },
      { limits, jobs: 1, pull: false, observer, signal },
    ).finally(() => observer.done());
    try {
      for (const { name: photo, file } of photos) {
        const started = performance.now();
        const telemetry = new RequestTelemetry();
        try {
          const { bytes } = await opened.cutout(
            {
              ...plainRequest,
              source: { kind: 'bytes', bytes: file },
              size: '50MP',
              format: 'png',
              typeLevel: 'none',
            },
            { accountId: 'local', requestId: 'compare', signal, telemetry },
          );
          const wholeMs = performance.now() - started;
          const runMs = telemetry.spans
            .filter(({ stage }) => stage === 'infer')
            .reduce((sum, { ms }) => sum + ms, 0);
          results.push({ image: await resultThumbnail(bytes, maxSide), runMs, wholeMs });
          err.write(`${name}: ${photo} in ${(wholeMs / 1000).toFixed(1)} s\n`);
        } catch (error) {
          signal.throwIfAborted();
          results.push({ fault: reasonOf(error) });
          err.write(`${name}: ${photo} failed: ${reasonOf(error)}\n`);
        }
      }
      const runMs = median(results.flatMap((result) => ('fault' in result ? [] : [result.runMs])));
      const { modelsDir, device } = config.engine;
      if (runMs !== undefined)
        await rememberRun(modelsDir, manifest, { device, file: opened.network, runMs });
    } finally {
      await opened.close();
    }
    return { results };
  } catch (error) {
    signal.throwIfAborted();
    const fault = reasonOf(error);
    err.write(`${name} cannot be used: ${fault}\n`);
    return { fault, results: photos.map(() => ({ fault })) };
  }
}

const taken = (page: string) => new UserError(`${page} exists already; --force replaces it.`);
const unwritable = (page: string, reason: string) =>
  new UserError(`The page ${page} cannot be written: ${reason}.`);

/** Rejects with UserError where the page cannot be written. */
async function checkPage(page: string, force: boolean): Promise<void> {
  const found = await stat(page).catch(() => undefined);
  if (found?.isDirectory()) throw unwritable(page, 'it is a folder');
  if (found && !force) throw taken(page);
  const folder = path.dirname(path.resolve(page));
  await checkWritable(folder).catch((error: unknown) => {
    const reason = codeOf(error) === 'ENOENT' ? `there is no folder ${folder}` : reasonToWrite(error);
    throw unwritable(page, reason);
  });
}

/**
 * `cutout models compare`: one page with the results of several networks. A network or photo that fails is shown with
 * the reason. Resolves with false if anything failed. Rejects with UserError if a photo cannot be read or the page not
 * be written; nothing is run then.
 */
export async function compareNetworks(
  files: readonly string[],
  { out: page, force, networks }: CompareOptions,
  config: Config,
  streams: CompareStreams,
): Promise<boolean> {
  const { out, err } = streams;
  await checkPage(page, force);
  const limits = configureLocalImages();
  const photos: Photo[] = [];
  for (const file of files) photos.push(await readPhoto(file, limits));
  const entries = await chosenEntries(config.engine.modelsDir, networks);
  const compared: ComparedNetwork[] = [];
  for (const [at, entry] of entries.entries()) {
    const { name, title, licence, file } = entry.manifest;
    err.write(`${name} (${at + 1} of ${entries.length})\n`);
    compared.push({
      name,
      title,
      licence: licence.restricted ? `${licence.name} (restricted)` : licence.name,
      bytes: file.bytes,
      ...(await runNetwork(entry, photos, config, limits, streams)),
    });
  }
  const processor = os.cpus()[0]?.model.trim() ?? 'an unknown processor';
  const about = `Times of one run of the network and of the whole image, decoding and encoding included, on ${processor}, ${config.engine.device}.`;
  await writeAtomically(page, comparisonPage(photos, compared, about), force ? 'replace' : 'new').catch(
    (error: unknown) => {
      throw codeOf(error) === 'EEXIST' ? taken(page) : unwritable(page, reasonToWrite(error));
    },
  );
  out.write(`${page}\n`);
  return compared.every(({ results }) => results.every((result) => !('fault' in result)));
}
