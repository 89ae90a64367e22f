import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';

export interface MemoryLimit {
  readonly bytes: number;
  /** For people: what sets it. */
  readonly from: string;
}

/** What is left to others on a machine that sets no limit. */
const shareOfMachine = 0.75;
/** For what is not counted: the heap's garbage, fragments, files that the system keeps for the process. */
export const countedShare = 0.9;

/** What this process may take: as configured, else the limit of its control group, else a share of the machine. */
export function memoryLimit(
  wish: number | 'auto',
  group: number = process.constrainedMemory(),
  machine: number = totalmem(),
): MemoryLimit {
  if (wish !== 'auto') return { bytes: wish, from: 'CUTOUT_MEMORY_LIMIT' };
  // 0 or more than there is: no limit.
  if (group > 0 && group < machine) return { bytes: group, from: 'the control group' };
  return { bytes: shareOfMachine * machine, from: 'three quarters of the machine' };
}

/** Bytes of this process that the system cannot take back: without the pages of files, such as mapped weights. */
export function ownMemory(): number {
  try {
    const status = readFileSync('/proc/self/status', 'utf8');
    const kibibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]);
    const own = (kibibytes('RssAnon') + kibibytes('RssShmem')) * 1024;
    if (own > 0) return own;
  } catch {
    // Not Linux.
  }
  return process.memoryUsage.rss();
}
