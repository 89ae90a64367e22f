import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { ModelError } from './error.ts';
import type { PrepareTask } from './prepareWorker.ts';
import type { PreparedRecord } from './record.ts';

/** Errors of another thread keep their properties, but not their class. */
const isModelError = (error: unknown): error is ModelError =>
  error instanceof Error && error.name === 'ModelError';

/**
 * Prepares a pulled network (prepareWorker.ts) in a thread of its own: it takes seconds, in which a server has requests to
 * answer. Rejects with ModelError, with the error of a file that cannot be written, or with the reason of `signal`; what an
 * abort leaves is deleted by the next pull.
 */
export async function prepareNetwork(task: PrepareTask, signal?: AbortSignal): Promise<PreparedRecord> {
  signal?.throwIfAborted();
  const worker = new Worker(new URL('./prepareWorker.js', import.meta.url), {
    workerData: task,
    execArgv: [],
  });
  try {
    const [record] = (await once(worker, 'message', { signal })) as [PreparedRecord];
    return record;
  } catch (error) {
    signal?.throwIfAborted();
    throw isModelError(error) ? new ModelError(error.code, error.message, { cause: error.cause }) : error;
  } finally {
    await worker.terminate();
  }
}
