import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AppError, clientClosed } from '../../errors.ts';
import { freeBuffer, UploadBuffer } from '../../uploadBuffer.ts';
import { timeSlice, timeSliced } from '../eventLoop.ts';

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

/** One body that is being received, from its first listener to its last. */
class Receiving {
  readonly #req: IncomingMessage;
  readonly #bounds: ReceiveBounds;
  readonly #resolve: () => void;
  readonly #reject: (reason: unknown) => void;
  #take: Take = () => undefined;
  #received = 0;
  #stopped = false;
  #ended = false;
  /** A piece waits for a later turn of the event loop; no other one arrives before. */
  #waiting = false;

  constructor(
    req: IncomingMessage,
    bounds: ReceiveBounds,
    { resolve, reject }: { resolve: () => void; reject: (reason: unknown) => void },
  ) {
    this.#req = req;
    this.#bounds = bounds;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(take: Take): void {
    const { signal } = this.#bounds;
    const req = this.#req;
    this.#take = take;
    if (signal.aborted) {
      this.#aborted();
      return;
    }
    signal.addEventListener('abort', this.#aborted);
    req.on('end', this.#end);
    req.on('close', this.#left);
    // Without a listener a broken connection would end the process.
    req.on('error', this.#left);
    req.on('data', this.#data);
  }

  readonly failed = (error: unknown): void => {
    this.#stop();
    this.#req.pause();
    this.#reject(error);
  };

  readonly #aborted = (): void => this.failed(this.#bounds.signal.reason);

  readonly #left = (): void => {
    this.#stop();
    timeSlice(() => this.#reject(clientClosed));
  };

  readonly #end = (): void => {
    this.#ended = true;
    this.#req.off('close', this.#left);
    // Pausing at the last piece does not delay this event.
    if (!this.#waiting) this.#complete();
  };

  readonly #data = catchInListener((piece: Buffer) => {
    this.#received += piece.length;
    if (this.#received > this.#bounds.maxBytes) throw this.#bounds.tooLarge();
    this.#waiting = true;
    const ready = timeSliced(() => {
      if (this.#stopped) return undefined;
      this.#waiting = false;
      const taken = this.#take(piece);
      if (this.#ended) this.#complete();
      return taken;
    });
    if (ready === undefined) return;
    this.#req.pause();
    ready.then(() => this.#stopped || this.#req.resume(), this.failed);
  }, this.failed);

  #complete(): void {
    this.#stop();
    this.#resolve();
  }

  #stop(): void {
    this.#stopped = true;
    this.#req.off('data', this.#data);
    this.#req.off('end', this.#end);
    this.#req.off('close', this.#left);
    this.#req.off('error', this.#left);
    this.#bounds.signal.removeEventListener('abort', this.#aborted);
  }
}

/**
 * Passes every piece of a request's body to the function that `start` returns, and resolves when the body is
 * complete. Rejects, and leaves the rest unread, if the body exceeds `maxBytes` bytes, if the client disconnects,
 * if the signal is aborted, and with any error of `take` or given to `failed`.
 */
export function receive(
  req: IncomingMessage,
  bounds: ReceiveBounds,
  start: (failed: (error: unknown) => void) => Take,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const receiving = new Receiving(req, bounds, { resolve, reject });
    receiving.start(start(receiving.failed));
  });
}

/**
 * Receives the whole body in one buffer. Many small pieces take no more memory than few large ones. `arrived` is
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

/** Requests whose client waits before it sends the body. */
const deferred = new WeakSet<IncomingMessage>();

/** Marks a request with `Expect: 100-continue`, whose client waits before it sends the body. */
export function deferContinue(req: IncomingMessage): void {
  deferred.add(req);
}

/** Lets such a client send its body. A request refused before this (wrong key, unknown path) uploads nothing. */
export function sendContinue(req: IncomingMessage, res: ServerResponse): void {
  if (deferred.delete(req)) res.writeContinue();
}
