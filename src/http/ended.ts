import type { Context } from './context.ts';

/**
 * Calls `listener` once: when the answer is out, or when its connection is no more. The answer alone does not
 * tell: of requests sent ahead on one connection, those whose turn never came end without any event of theirs.
 */
export function onceEnded({ req, res }: Context, listener: () => void): void {
  const { socket } = req;
  const end = () => {
    res.off('close', end);
    socket.off('close', end);
    listener();
  };
  if (res.closed || socket.destroyed) {
    listener();
  } else {
    res.once('close', end);
    socket.once('close', end);
  }
}
