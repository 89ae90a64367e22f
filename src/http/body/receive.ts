import type { IncomingMessage } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { type AppError, clientClosed } from '../../errors.ts';
import { UploadBuffer } from '../../uploadBuffer.ts';
import { timeSlice } from '../timeSlice.ts';

export interface ReceiveBounds {
  /** Most bytes, however they are sent. */
  readonly most: number;
  readonly tooLarge: () => AppError;
  /** Ends the receiving with its reason. */
  readonly signal: AbortSignal;
}

/** Pieces of a body that are taken in a row. */
const piecesATurn = 500;

/** Takes a piece of the body; a promise where no more shall come before it is fulfilled. */
export type Take = (piece: Buffer) => Promise<void> | undefined;

/** `listener`, with what it throws given to `failed`: a throw in a listener of an emitter would end the process. */
export const guarded =
  <A extends readonly unknown[]>(listener: (...args: A) => void, failed: (error: unknown) => void) =>
  (...args: A): void => {
    try {
      listener(...args);
    } catch (error) {
      failed(error);
    }
  };

/**
 * Gives every piece of a request's body to what `start` returns, and fulfils when the body is complete. Rejects, and
 * leaves the rest of the body unread, when it has more than `most` bytes, when the client leaves, when the signal is
 * aborted, and with whatever `take` throws, rejects with or gives to `failed`.
 */
export function receive(
  req: IncomingMessage,
  { most, tooLarge, signal }: ReceiveBounds,
  start: (failed: (error: unknown) => void) => Take,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = 0;
    let pieces = 0;
    let waiting = 0;
    const stop = () => {
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
    const end = () => {
      stop();
      resolve();
    };
    const pauseUntil = (ready: Promise<unknown>) => {
      waiting += 1;
      req.pause();
      const resume = () => {
        waiting -= 1;
        pieces = 0;
        if (waiting === 0) req.resume();
      };
      ready.then(resume, failed);
    };
    const take = start(failed);
    const data = guarded((piece: Buffer) => {
      received += piece.length;
      if (received > most) throw tooLarge();
      const ready = take(piece);
      if (ready !== undefined) pauseUntil(ready);
      pieces += 1;
      // Others have their turn, however many pieces of a byte each come at once.
      if (pieces === piecesATurn) pauseUntil(turn());
    }, failed);
    if (signal.aborted) return aborted();
    signal.addEventListener('abort', aborted);
    req.on('end', end);
    req.on('close', left);
    // Without a listener a connection that breaks would end the process.
    req.on('error', left);
    req.on('data', data);
  });
}

/**
 * The whole body in one buffer. Many small pieces take no more memory than few large ones. `arrived` is told how many bytes
 * there are, before they are kept; what it throws ends the receiving.
 */
export async function receiveBytes(
  req: IncomingMessage,
  { arrived, ...bounds }: ReceiveBounds & { readonly arrived: (bytes: number) => void },
): Promise<Buffer> {
  const bytes = new UploadBuffer(Number(req.headers['content-length'] ?? 0), bounds.most);
  await receive(req, bounds, () => (piece) => {
    arrived(bytes.size + piece.length);
    bytes.add(piece);
    return undefined;
  });
  return bytes.take();
}
