import type { Context } from './context.ts';

const lingerMs = 1000;

/** Whether the client may still be sending its body. */
export const isUploading = ({ req }: Context): boolean => !req.complete && !req.destroyed;

/**
 * Lingering close: sends the answer in `ctx` while the client is still sending. Closing at once would reset
 * the connection before the client reads the answer, and reading on would let it send without limit. So the
 * answer is sent completely, further input is discarded, and the connection is closed when the client is
 * done, or after a second.
 */
export function lingeringClose(ctx: Context): void {
  const { req, res } = ctx;
  const body = ctx.body as string;
  ctx.respond = false;
  res.setHeader('Connection', 'close');
  if (ctx.method === 'HEAD') res.flushHeaders();
  else res.write(body);

  // Ending the response makes node:http destroy the socket, so it is delayed.
  const end = () => {
    clearTimeout(timer);
    res.end();
  };
  const timer = setTimeout(end, lingerMs);
  req.unpipe();
  req.removeAllListeners('data');
  req.once('end', end);
  // A reset ends the connection like any other end.
  req.once('error', end);
  req.resume();
}
