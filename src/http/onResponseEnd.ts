import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Context } from './context.ts';
import { timeSlice } from './eventLoop.ts';

/** The end of one request: one listener on each emitter, however many subscribers there are. */
interface ResponseEnd {
  delivered: boolean;
  over: boolean;
  readonly listeners: (() => void)[];
  /** Pending work of the subscribers, for example settling the charge. */
  readonly work: Promise<void>[];
  readonly end: () => void;
}

const endings = new WeakMap<IncomingMessage, ResponseEnd>();

/** Subscribers to the end of a connection; one listener per socket, however many requests it carries. */
const socketCloseListeners = new WeakMap<Socket, Set<() => void>>();

function closeListenersOf(socket: Socket): Set<() => void> {
  const known = socketCloseListeners.get(socket);
  if (known) return known;
  const all = new Set<() => void>();
  socketCloseListeners.set(socket, all);
  socket.once('close', () => {
    for (const end of all) end();
  });
  return all;
}

function endingOf({ req, res }: Pick<Context, 'req' | 'res'>): ResponseEnd {
  const known = endings.get(req);
  if (known) return known;
  const { socket } = req;
  const finish = () => {
    // A write that failed immediately sets `errored` only: the socket is destroyed later.
    ending.delivered = !socket.destroyed && !socket.errored;
  };
  const end = () => {
    res.off('finish', finish);
    res.off('close', end);
    closeListenersOf(socket).delete(end);
    ending.over = true;
    timeSlice(() => {
      for (const listener of ending.listeners.splice(0)) listener();
    });
  };
  const ending: ResponseEnd = { delivered: false, over: false, listeners: [], work: [], end };
  endings.set(req, ending);
  if (res.closed || socket.destroyed) {
    ending.over = true;
  } else {
    // Before node:http's own listener, which destroys the socket after the last answer.
    res.prependOnceListener('finish', finish);
    res.once('close', end);
    closeListenersOf(socket).add(end);
  }
  return ending;
}

/** Ends a request, undelivered, whose connection gets an answer in its place: nothing it would still send is sent. */
export const endUnanswered = (exchange: Pick<Context, 'req' | 'res'>): void => endingOf(exchange).end();

/** Whether the answer was sent or never will be. */
export const hasEnded = (exchange: Pick<Context, 'req' | 'res'>): boolean => endingOf(exchange).over;

/** Resolves when the request has ended and the work of its subscribers is done. */
export async function subscribersDone(req: IncomingMessage): Promise<void> {
  await Promise.all(endings.get(req)?.work ?? []);
}

/**
 * Calls `listener` once: when the answer was sent (`delivered` true: the system took all of it while the connection
 * was open), when the connection is closed, or by `endUnanswered`. The response's events are not enough: a pipelined
 * request whose turn never came has none. Nor is `writableFinished`, true also when a broken connection discarded the
 * rest. A server that stops waits for the listener's promise, which must not reject.
 */
export function onResponseEnd(
  context: Pick<Context, 'req' | 'res'>,
  listener: (delivered: boolean) => void | Promise<void>,
): void {
  const ending = endingOf(context);
  const work = new Promise<void>((resolve, reject) => {
    const notify = () => {
      try {
        resolve(listener(ending.delivered));
      } catch (error) {
        // An error ends this request's work and does not keep other subscribers from being called.
        reject(error);
      }
    };
    if (ending.over) notify();
    else ending.listeners.push(notify);
  });
  // `subscribersDone` reports the error to whoever stops the server.
  work.catch(() => {});
  ending.work.push(work);
}
