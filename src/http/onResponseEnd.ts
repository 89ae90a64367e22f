import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Context } from './context.ts';
import { timeSlice } from './timeSlice.ts';

/** The end of one request: one listener on each emitter, however many hear of it. */
interface Ending {
  delivered: boolean;
  over: boolean;
  readonly listeners: (() => void)[];
  /** What the listeners do: closing the request's books among it. */
  readonly work: Promise<void>[];
}

const endings = new WeakMap<IncomingMessage, Ending>();

/** Who hears of the end of a connection; one listener on each socket, however many requests it carries. */
const hearers = new WeakMap<Socket, Set<() => void>>();

function hearersOf(socket: Socket): Set<() => void> {
  const known = hearers.get(socket);
  if (known) return known;
  const all = new Set<() => void>();
  hearers.set(socket, all);
  socket.once('close', () => {
    for (const end of all) end();
  });
  return all;
}

function endingOf({ req, res }: Pick<Context, 'req' | 'res'>): Ending {
  const known = endings.get(req);
  if (known) return known;
  const { socket } = req;
  const ending: Ending = { delivered: false, over: false, listeners: [], work: [] };
  endings.set(req, ending);
  const finish = () => {
    // A write that failed at once is told by `errored` alone: the socket is destroyed only after this.
    ending.delivered = !socket.destroyed && !socket.errored;
  };
  const end = () => {
    res.off('finish', finish);
    res.off('close', end);
    hearersOf(socket).delete(end);
    ending.over = true;
    timeSlice(() => {
      for (const listener of ending.listeners.splice(0)) listener();
    });
  };
  if (res.closed || socket.destroyed) {
    ending.over = true;
  } else {
    // Before node:http itself hears of it: the last answer of a connection destroys the socket.
    res.prependOnceListener('finish', finish);
    res.once('close', end);
    hearersOf(socket).add(end);
  }
  return ending;
}

/** Resolves when the request has ended and all that its listeners then do is done. */
export async function workedOff(req: IncomingMessage): Promise<void> {
  await Promise.all(endings.get(req)?.work ?? []);
}

/**
 * Calls `listener` once: when the answer is out (`delivered` true: all of it was handed to the system while its
 * connection stood), or when its connection is no more. The answer alone does not tell: of requests sent ahead on
 * one connection, those whose turn never came end without any event of theirs. Nor does `writableFinished`: it is
 * true as well when a broken connection threw away what it had still to send. A server that stops waits for what the
 * listener does, which must not reject.
 */
export function onResponseEnd(
  context: Pick<Context, 'req' | 'res'>,
  listener: (delivered: boolean) => void | Promise<void>,
): void {
  const ending = endingOf(context);
  const work = new Promise<void>((resolve, reject) => {
    const tell = () => {
      try {
        resolve(listener(ending.delivered));
      } catch (error) {
        // It ends this request's work, and keeps nobody else from hearing of the end.
        reject(error);
      }
    };
    if (ending.over) tell();
    else ending.listeners.push(tell);
  });
  // Whoever stops the server hears of it through `workedOff`.
  work.catch(() => {});
  ending.work.push(work);
}
