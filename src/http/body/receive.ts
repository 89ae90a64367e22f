import type { IncomingMessage } from 'node:http';
import { type AppError, clientClosed } from '../../errors.ts';
import { freeBuffer, UploadBuffer } from '../../uploadBuffer.ts';
import { timeSlice, timeSliced } from '../timeSlice.ts';

interface ReceiveBounds {
  /** The maximum length of the body in bytes, however it is sent. */
  readonly maxBytes: number;
  readonly tooLarge: () => AppError;
  /** Aborts with its reason. */
  readonly signal: AbortSignal;
}

/** Receives a piece of the body; a returned promise pauses the body until it is fulfilled. */
type Take = (piece: Buffer) => Promise<void> | undefined;

/** Passes errors of `listener` to `failed`: an error thrown in an event listener would end the process. */
export const catchInListener =
  <A extends readonly unknown[]>(listener: (...args: A) => void, failed: (error: unknown) => void) =>
  (...args: A): void => {
    try {
      listener(...args);
    } catch (error) {
      failed(error);
    }
  };

/**
 * Passes every piece of a request's body to the function that `start` returns, and resolves when the body is
 * complete. Rejects, and leaves the rest unread, if the body exceeds `maxBytes` bytes, if the client disconnects,
 * if the signal is aborted, and with any error of `take` or given to `failed`.
 */
export function receive(
  req: IncomingMessage,
  { maxBytes, tooLarge, signal }: ReceiveBounds,
  start: (failed: (error: unknown) => void) => Take,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = 0;
    let stopped = false;
    let ended = false;
    /** A piece waits for a later turn of the event loop; no other one arrives before. */
    let waiting = false;
    const stop = () => {
      stopped = true;
      req.off('data', data);
      req.off('end', end);
      req.off('close', left);
      req.off('error', left);
      signal.removeEventListener('abort', aborted);
    };
    const failed = (error: unknown) => {
      stop();
      req.pause();
      reject(error);
    };
    const aborted = () => failed(signal.reason);
    const left = () => {
      stop();
      timeSlice(() => reject(clientClosed));
    };
    const complete = () => {
      stop();
      resolve();
    };
    const end = () => {
      ended = true;
      req.off('close', left);
      // Pausing at the last piece does not delay this event.
      if (!waiting) complete();
    };
    const take = start(failed);
    const data = catchInListener((piece: Buffer) => {
      received += piece.length;
      if (received > maxBytes) throw tooLarge();
      waiting = true;
      const ready = timeSliced(() => {
        if (stopped) return undefined;
        waiting = false;
        const taken = take(piece);
        if (ended) complete();
        return taken;
      });
      if (ready === undefined) return;
      req.pause();
      ready.then(() => stopped || req.resume(), failed);
    }, failed);
    if (signal.aborted) return aborted();
    signal.addEventListener('abort', aborted);
    req.on('end', end);
    req.on('close', left);
    // Without a listener a broken connection would end the process.
    req.on('error', left);
    req.on('data', data);
  });
}

/**
 * The whole body in one buffer. Many small pieces take no more memory than few large ones. `arrived` is
 * called with the number of bytes before they are kept; an error it throws ends the receiving.
 */
export async function receiveBytes(
  req: IncomingMessage,
  { arrived, ...bounds }: ReceiveBounds & { readonly arrived: (bytes: number) => void },
): Promise<Buffer> {
  const bytes = new UploadBuffer(Number(req.headers['content-length'] ?? 0), bounds.maxBytes);
  await receive(req, bounds, () => (piece) => {
    arrived(bytes.size + piece.length);
    bytes.add(piece);
    freeBuffer(piece);
    return undefined;
  });
  return bytes.take();
}
