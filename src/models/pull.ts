import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { makeFolder } from '../folder.ts';
import type { CatalogueEntry } from './catalogue.ts';
import { exists } from './files.ts';
import { type Form, type NetworkFiles, networkFiles, UNFINISHED } from './layout.ts';
import { withLock } from './lock.ts';
import type { Manifest } from './manifest.ts';
import type { Observer } from './observer.ts';
import { type PreparedRecord, prepareNetwork } from './prepare.ts';
import { receive } from './receive.ts';
import type { OpenSource } from './source/delivery.ts';
import { fileSource } from './source/file.ts';
import { type Fetch, httpsSource } from './source/https.ts';
import { npmSource, type RunNpm, runNpm } from './source/npm.ts';
import { readRecord, verifyPrepared, verifySource } from './verify.ts';

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

/** What the operator must know of a network's licence before its weights are fetched. */
function licenceNotice(manifest: Manifest): string {
  const { name, restricted, note } = manifest.licence;
  const first = `The weights of ${manifest.name} are under ${name}.${note ? ` ${note}` : ''}`;
  if (!restricted) return first;
  return (
    `${first}\nNetworks without such a restriction: \`cutout models list\`, for example ` +
    '`cutout models pull birefnet-general-lite` (MIT) or `u2netp` (Apache-2.0), then CUTOUT_MODEL=<name>.'
  );
}

/** Deletes leftovers of killed pulls; a resumable part stays. The caller holds the lock. */
async function sweep(files: NetworkFiles): Promise<void> {
  const resumable = (await exists(files.source)) ? [] : [files.part, files.partRecord];
  for (const name of await readdir(files.folder)) {
    const file = path.join(files.folder, name);
    if (!name.startsWith(UNFINISHED) || resumable.includes(file)) continue;
    await rm(file, { recursive: true, force: true });
  }
}

function openerFor(entry: CatalogueEntry, files: NetworkFiles, options: PullOptions): OpenSource {
  const { source, file } = entry.manifest;
  const { from, dependencies, observer } = options;
  if (from !== undefined && /^[a-z]+:\/\//i.test(from))
    return httpsSource(from, file.bytes, dependencies.fetch);
  if (from !== undefined) return fileSource(path.resolve(from));
  switch (source.kind) {
    case 'https':
      return httpsSource(source.url, file.bytes, dependencies.fetch);
    case 'file':
      return fileSource(path.resolve(entry.folder, source.path));
    case 'npm': {
      const folder = path.join(files.folder, `${UNFINISHED}package`);
      return npmSource(source, folder, dependencies.runNpm, (phase) => observer.progress({ phase }));
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
  const phase = options.from === undefined && manifest.source.kind === 'npm' ? 'unpack' : 'download';
  try {
    await receive(
      files,
      manifest,
      openerFor(entry, files, options),
      (bytes) => observer.progress({ phase, bytes, total: manifest.file.bytes }),
      options.signal,
    );
  } finally {
    await sweep(files);
  }
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
  const { modelsDir, form, observer } = options;
  const files = networkFiles(modelsDir, manifest, form);
  const state = force ? 'outdated' : await verifyPrepared(files, entry, form);
  const record = await readRecord(files);
  if (state === 'ok' && record) return record;
  if (state === 'damaged') observer.notice(`${files.prepared} is damaged and is prepared again.`);
  observer.progress({ phase: 'prepare' });
  return prepareNetwork(modelsDir, entry, form);
}

async function locked<T>(
  manifest: Manifest,
  options: PullOptions,
  work: (files: NetworkFiles) => Promise<T>,
) {
  const files = networkFiles(options.modelsDir, manifest, options.form);
  makeFolder('folder of the network', files.folder);
  return withLock(
    files.lock,
    async () => {
      await sweep(files);
      return work(files);
    },
    { signal: options.signal, onWait: () => options.observer.progress({ phase: 'wait' }) },
  );
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

/** Prepares prepared.onnx again from the pulled file. Rejects with ModelError. */
export function prepareAgain(entry: CatalogueEntry, options: PullOptions): Promise<PreparedRecord> {
  return locked(entry.manifest, options, () => prepareUnlessDone(entry, options, true));
}

/** Deletes all files of a network; resolves to whether there were any. */
export async function removeNetwork(entry: CatalogueEntry, options: PullOptions): Promise<boolean> {
  const { folder } = networkFiles(options.modelsDir, entry.manifest);
  const before = await readdir(folder).catch(() => []);
  if (before.length === 0) return false;
  await locked(entry.manifest, options, () => rm(folder, { recursive: true, force: true }));
  return true;
}
