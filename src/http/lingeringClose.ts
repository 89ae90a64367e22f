import type { Context } from './context.ts';

const lingerMs = 1000;

/** True while the client may still be sending its body. */
export const isUploading = ({ req }: Context): boolean => !req.complete && !req.destroyed;

/**
 * Sends the answer that stands in `ctx` while the client is still sending. Closing at once would make it see
 * a reset instead of the answer, and reading on for ever would let it send without limit. So the answer goes
 * out whole, what still comes is thrown away, and the connection ends when the client is done or after a
 * second.
 */
export function lingeringClose(ctx: Context): void {
  const { req, res } = ctx;
  const body = ctx.body as string;
  ctx.respond = false;
  res.setHeader('Connection', 'close');
  if (ctx.method === 'HEAD') res.flushHeaders();
  else res.write(body);

  // Ending the response is what makes node:http destroy the socket, so that waits.
  const end = () => {
    clearTimeout(timer);
    res.end();
  };
  const timer = setTimeout(end, lingerMs);
  req.unpipe();
  req.removeAllListeners('data');
  req.once('end', end);
  // A reset is an end like any other here.
  req.once('error', end);
  req.resume();
}
