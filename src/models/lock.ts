import { rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkWritable } from '../files.ts';
import { tryLock } from '../lock.ts';

const POLL_MS = 250;

const inodeOf = (file: string): number | undefined => statSync(file, { throwIfNoEntry: false })?.ino;

/**
 * Waits until this process alone holds the lock `file`, runs `work`, and releases and removes it. `onWait` is called once if the
 * lock is held. Rejects with the system's error if the folder cannot be written.
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
    const lock = tryLock(file);
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
