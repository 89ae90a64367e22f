import type { Form } from '../compiler/form.ts';
import { ModelError } from '../models/error.ts';
import { memoryText, type PreparedRecord } from '../models/record.ts';
import { countedShare, memoryLimit } from '../ops/memory.ts';

const mb = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;

/** What networks have to fit into. */
export interface MemoryRoom {
  /** CUTOUT_MEMORY_LIMIT. */
  readonly limit: number | 'auto';
  /** Bytes that the process held before: preparing and measuring leave freed memory behind, which is used again. */
  readonly held: number;
}

/** Bytes that the process held before it prepared or opened anything. */
const held = process.memoryUsage.rss();

export const roomFor = (limit: number | 'auto' = 'auto'): MemoryRoom => ({ limit, held });

/**
 * Checks that a network which is not open yet fits into the memory that the process has left, before the system ends the
 * process. Throws ModelError `MODEL_MEMORY`.
 */
export function checkMemory(
  { name, form }: { readonly name: string; readonly form: Form },
  memory: PreparedRecord['memory'],
  { limit, held }: MemoryRoom,
): void {
  const { bytes, from } = memoryLimit(limit);
  if (!memory || held + memory.bytes <= countedShare * bytes) return;
  throw new ModelError(
    'MODEL_MEMORY',
    `${name} in ${form} takes ${memoryText(memory)} of memory and is not opened: of ${mb(bytes)} (${from}), the process has ${mb(Math.max(0, countedShare * bytes - held))} left. ` +
      `Give it or its container ${mb((held + memory.bytes) / countedShare)}, set CUTOUT_MEMORY_LIMIT to what it may take, or take another form (CUTOUT_PRECISION) or network (CUTOUT_MODEL).`,
  );
}
