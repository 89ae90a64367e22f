/** Rejects with the signal's reason as soon as it is aborted; the work continues for others. */
export function unlessAborted(work: Promise<unknown>, signal: AbortSignal | undefined): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal?.reason);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
    // Handles the result of work that nobody waits for any more, too.
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', abort));
  });
}
