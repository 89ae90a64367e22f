import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Context } from './context.ts';

/** What is done at the end of each request: closing its books among it. */
const endings = new WeakMap<IncomingMessage, Promise<void>[]>();

/** Resolves when the request has ended and all that its listeners then do is done. */
export async function workedOff(req: IncomingMessage): Promise<void> {
  await Promise.all(endings.get(req) ?? []);
}

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

/**
 * Calls `listener` once: when the answer is out (`delivered` true: all of it was handed to the system while its
 * connection stood), or when its connection is no more. The answer alone does not tell: of requests sent ahead on
 * one connection, those whose turn never came end without any event of theirs. Nor does `writableFinished`: it is
 * true as well when a broken connection threw away what it had still to send. A server that stops waits for what the
 * listener does, which must not reject.
 */
export function onceEnded(
  { req, res }: Pick<Context, 'req' | 'res'>,
  listener: (delivered: boolean) => void | Promise<void>,
): void {
  const { socket } = req;
  const ended = new Promise<void>((resolve) => {
    let delivered = false;
    const finish = () => {
      // A write that failed at once is told by `errored` alone: the socket is destroyed only after this.
      delivered = !socket.destroyed && !socket.errored;
    };
    const end = () => {
      res.off('finish', finish);
      res.off('close', end);
      hearersOf(socket).delete(end);
      resolve(listener(delivered));
    };
    if (res.closed || socket.destroyed) {
      resolve(listener(false));
    } else {
      // Before node:http itself hears of it: the last answer of a connection destroys the socket.
      res.prependOnceListener('finish', finish);
      res.once('close', end);
      hearersOf(socket).add(end);
    }
  });
  const all = endings.get(req);
  if (all) all.push(ended);
  else endings.set(req, [ended]);
}
