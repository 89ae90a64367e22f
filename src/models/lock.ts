import { createHash, randomUUID } from 'node:crypto';
import { open, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { codeOf } from '../files.ts';
import { UNFINISHED } from './layout.ts';

const POLL_MS = 250;
const HEARTBEAT_MS = 10_000;
/** Milliseconds without a heartbeat after which an owner counts as dead, even one on another host. */
const STALE_MS = 60_000;
/** Milliseconds after which a lock without its owner counts as left by one killed before it could write that. */
const UNWRITTEN_MS = 5_000;

const ownerSchema = z.object({ token: z.string(), host: z.string(), pid: z.number(), started: z.string() });

/** Returns the start time of a process, which distinguishes a new process that reuses a process id; '' if unknown. */
async function startOf(pid: number): Promise<string> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // Field 22 of /proc/PID/stat; the second field is a name in parentheses that may contain spaces.
  return line.slice(line.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

/** Creates the lock, and leaves none that nobody holds if its owner cannot be written. Rejects with EEXIST if there is one. */
async function create(file: string, owner: string): Promise<void> {
  const handle = await open(file, 'wx');
  try {
    await handle.writeFile(owner);
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

async function isStale(file: string, content: string): Promise<boolean> {
  const age = Date.now() - (await stat(file)).mtimeMs;
  if (age > STALE_MS) return true;
  let owner: z.infer<typeof ownerSchema>;
  try {
    owner = ownerSchema.parse(JSON.parse(content));
  } catch {
    return age > UNWRITTEN_MS;
  }
  if (owner.host !== hostname()) return false;
  return !exists(owner.pid) || (await startOf(owner.pid)) !== owner.started;
}

/**
 * Removes the lock of a dead owner; false if another process is doing so. Removal first creates a marker
 * named after that very lock: while one process holds the marker and the lock is unchanged, nobody else
 * removes or replaces it.
 */
async function removeStale(file: string, seen: string): Promise<boolean> {
  const name = createHash('sha256').update(seen).digest('hex').slice(0, 16);
  const mark = path.join(path.dirname(file), `${UNFINISHED}lock.${name}`);
  try {
    await writeFile(mark, '', { flag: 'wx' });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    const { mtimeMs } = await stat(mark);
    if (Date.now() - mtimeMs > STALE_MS) await rm(mark, { force: true });
    return false;
  }
  try {
    if ((await readFile(file, 'utf8')) === seen) await rm(file);
  } finally {
    await rm(mark, { force: true });
  }
  return true;
}

/**
 * Waits until this process alone holds the lock `file`, runs `work`, and releases it. A lock whose owner died
 * is taken over. `onWait` is called once if the lock is held by another process.
 */
export async function withLock<T>(
  file: string,
  work: () => Promise<T>,
  options: { readonly signal?: AbortSignal | undefined; readonly onWait: () => void },
): Promise<T> {
  const started = await startOf(process.pid);
  const mine = JSON.stringify({ token: randomUUID(), host: hostname(), pid: process.pid, started });
  const isMine = async () => (await readFile(file, 'utf8').catch(() => '')) === mine;
  for (let waited = false; ; ) {
    options.signal?.throwIfAborted();
    try {
      await create(file, mine);
      // Not if this process was stopped before it wrote, and the lock was taken over.
      if (await isMine()) break;
      continue;
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
    try {
      const content = await readFile(file, 'utf8');
      if ((await isStale(file, content)) && (await removeStale(file, content))) continue;
    } catch (error) {
      if (codeOf(error) === 'ENOENT') continue; // released or taken over in the meantime
      throw error;
    }
    if (!waited) options.onWait();
    waited = true;
    await sleep(POLL_MS, undefined, { signal: options.signal });
  }
  const heartbeat = setInterval(() => {
    const now = new Date();
    utimes(file, now, now).catch(() => {});
  }, HEARTBEAT_MS);
  heartbeat.unref();
  try {
    return await work();
  } finally {
    clearInterval(heartbeat);
    if (await isMine()) await rm(file, { force: true });
  }
}
