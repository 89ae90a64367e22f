import { totalmem } from 'node:os';

interface MemoryLimit {
  readonly bytes: number;
  /** For people: what sets it. */
  readonly from: string;
}

/** What is left to others on a machine that sets no limit. */
const shareOfMachine = 0.75;
/** The rest is for what is not counted: the heap's garbage, fragments, files that the system keeps for the process. */
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

/**
 * What bounds the memory that the C++ heap keeps, as the process was started (scripts/setup/process.js): a library, or
 * glibc with few arenas; undefined: nothing does.
 */
export function describeAllocator(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const library = /[^\s:]*(jemalloc|tcmalloc|mimalloc)[^\s:]*/.exec(env['LD_PRELOAD'] ?? '')?.[1];
  const arenas = env['MALLOC_ARENA_MAX'];
  return library ?? (arenas && `glibc, ${arenas} arenas`);
}
