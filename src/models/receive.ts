import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rm, stat } from 'node:fs/promises';
import { z } from 'zod';
import { place, writeFault } from '../files.ts';
import { ModelError } from './error.ts';
import { writeNetworkFile } from './files.ts';
import { readKept } from './json.ts';
import type { NetworkFiles } from './layout.ts';
import type { Manifest } from './manifest.ts';
import type { OpenSource, Resume } from './source/delivery.ts';

/** Milliseconds without data after which a source has failed. */
const IDLE_MS = 60_000;
/** Resumptions of a broken connection in one pull, as long as each delivered something. */
const MAX_RESUMES = 5;

const partRecordSchema = z.object({ sha256: z.string(), validator: z.string().optional() });

/** Returns what an earlier download of the same file left. */
async function leftOver(files: NetworkFiles, manifest: Manifest): Promise<Resume> {
  const record = await readKept(partRecordSchema, files.partRecord);
  const part = await stat(files.part).catch(() => undefined);
  const fits = part && record?.sha256 === manifest.file.sha256 && part.size <= manifest.file.bytes;
  return fits ? { offset: part.size, validator: record.validator } : { offset: 0 };
}

async function discard(files: NetworkFiles): Promise<void> {
  await rm(files.part, { force: true });
  await rm(files.partRecord, { force: true });
}

async function hashOf(file: string, bytes: number): Promise<Hash> {
  const hash = createHash('sha256');
  if (bytes > 0)
    for await (const chunk of createReadStream(file, { end: bytes - 1 })) hash.update(chunk as Buffer);
  return hash;
}

/** Yields the bytes of an iterable; `idle` is aborted, which ends the source, after IDLE_MS without any. */
async function* withIdleTimeout(
  bytes: AsyncIterable<Uint8Array>,
  idle: AbortController,
): AsyncGenerator<Uint8Array> {
  const silent = () => idle.abort(new Error(`nothing was received for ${IDLE_MS / 1000} s`));
  let timer = setTimeout(silent, IDLE_MS);
  try {
    for await (const chunk of bytes) {
      clearTimeout(timer);
      yield chunk;
      timer = setTimeout(silent, IDLE_MS);
    }
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Appends what the source delivers to the part file and hashes it. @returns the SHA-256 of the part if it is
 * complete; undefined if the source ended early
 */
async function append(
  files: NetworkFiles,
  manifest: Manifest,
  resume: Resume,
  openSource: OpenSource,
  onBytes: (bytes: number) => void,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  if (resume.offset === manifest.file.bytes) return (await hashOf(files.part, resume.offset)).digest('hex');
  const idle = new AbortController();
  const either = signal ? AbortSignal.any([signal, idle.signal]) : idle.signal;
  const delivery = await openSource(resume, either);
  let bytes = delivery.offset;
  let handle: FileHandle | undefined;
  try {
    const hash = await hashOf(files.part, bytes);
    handle = await open(files.part, bytes > 0 ? 'a' : 'w');
    await writeNetworkFile(files.partRecord, [
      Buffer.from(JSON.stringify({ sha256: manifest.file.sha256, validator: delivery.validator })),
    ]);
    for await (const chunk of withIdleTimeout(delivery.bytes, idle)) {
      if (bytes + chunk.length > manifest.file.bytes) {
        throw new ModelError(
          'MODEL_CHECKSUM',
          `The source of ${manifest.name} sends more than the expected ${manifest.file.bytes} bytes; the download was deleted.`,
        );
      }
      await handle.writeFile(chunk);
      hash.update(chunk);
      bytes += chunk.length;
      onBytes(bytes);
    }
    return bytes === manifest.file.bytes ? hash.digest('hex') : undefined;
  } finally {
    // Releases what the source still holds open when writing fails.
    idle.abort();
    await handle?.close();
  }
}

/**
 * Downloads a network's file, verifies it and moves it to its final name. An interrupted download is resumed,
 * in this call or a later one. Rejects with ModelError; a wrong checksum deletes the download.
 */
export async function receive(
  files: NetworkFiles,
  manifest: Manifest,
  openSource: OpenSource,
  onBytes: (bytes: number) => void,
  signal?: AbortSignal,
): Promise<void> {
  for (let resumes = 0; ; resumes++) {
    const before = await leftOver(files, manifest);
    let sum: string | undefined;
    let cause: unknown;
    try {
      sum = await append(files, manifest, before, openSource, onBytes, signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ModelError) {
        if (error.code === 'MODEL_CHECKSUM') await discard(files);
        throw error;
      }
      // No other source helps.
      if (writeFault(error)) throw error;
      cause = error;
    }
    if (sum === manifest.file.sha256) break;
    if (sum !== undefined) {
      await discard(files);
      throw new ModelError(
        'MODEL_CHECKSUM',
        `The download of ${manifest.name} has sha256 ${sum}, expected ${manifest.file.sha256}; it was deleted.`,
      );
    }
    const { offset } = await leftOver(files, manifest);
    if (resumes === MAX_RESUMES || offset <= before.offset) {
      const reason = cause instanceof Error ? ` (${causeText(cause)})` : '';
      throw new ModelError(
        'MODEL_SOURCE',
        `The download of ${manifest.name} ended after ${offset} of ${manifest.file.bytes} bytes${reason}. ` +
          `Run \`cutout models pull ${manifest.name}\` again to continue.`,
        { cause },
      );
    }
  }
  await place(files.part, files.source);
  await rm(files.partRecord, { force: true });
}

/** Returns the reason of a failed connection, which fetch puts into `cause`. */
function causeText(error: Error): string {
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
