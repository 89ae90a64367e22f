import { rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkWritable } from '../files.ts';
import { tryLock } from '../lock.ts';
import { ModelError } from './error.ts';

const POLL_MS = 250;

/** Takes the lock; undefined while it is held. Throws ModelError `MODEL_UNWRITABLE` where the file system has no locks. */
function take(file: string): ReturnType<typeof tryLock> {
  try {
    return tryLock(file);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const advice = 'Use a folder whose file system has locks, as NFS from version 4 on.';
    throw new ModelError('MODEL_UNWRITABLE', `${file} cannot be locked: ${reason}. ${advice}`, { cause });
  }
}

const inodeOf = (file: string): number | undefined => statSync(file, { throwIfNoEntry: false })?.ino;

/**
 * Waits until this process alone holds the lock `file`, runs `work`, and releases and removes it. `onWait` is called once if the
 * lock is held. Rejects with the system's error if the folder cannot be written, with ModelError `MODEL_UNWRITABLE` if it cannot be
 * locked.
 */
export async function withLock<T>(
  file: string,
  work: () => Promise<T>,
  { signal, onWait }: { readonly signal?: AbortSignal | undefined; readonly onWait: () => void },
): Promise<T> {
  await checkWritable(path.dirname(file));
  for (let waited = false; ; ) {
    signal?.throwIfAborted();
    const before = inodeOf(file);
    const lock = take(file);
    if (!lock) {
      if (!waited) onWait();
      waited = true;
      await sleep(POLL_MS, undefined, { signal });
      continue;
    }
    try {
      // Not the file that its last owner has just removed, and others may have made again.
      if (before === undefined || inodeOf(file) !== before) continue;
      return await work();
    } finally {
      if (before !== undefined && inodeOf(file) === before) rmSync(file);
      lock.release();
    }
  }
}
