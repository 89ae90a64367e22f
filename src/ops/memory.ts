import { totalmem } from 'node:os';

/** Fraction of the machine's memory used if nothing sets a limit. */
const shareOfMachine = 0.75;
/** Fraction of the limit that is budgeted; the rest is for garbage on the heap, fragmentation and cached files. */
export const countedShare = 0.9;

/** Returns the limit that is configured, else that of the control group, else a fraction of the machine's. `from`: what sets it, in words. */
export function memoryLimit(
  requested: number | 'auto',
  group: number = process.constrainedMemory(),
  machine: number = totalmem(),
) {
  if (requested !== 'auto') return { bytes: requested, from: 'CUTOUT_MEMORY_LIMIT' };
  // 0, or more than the machine has: no limit.
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
