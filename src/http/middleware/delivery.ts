import { Readable } from 'node:stream';
import type { Context, Middleware } from '../context.ts';
import { onResponseEnd } from '../onResponseEnd.ts';

/**
 * Sends the head of the answer and sets `headSent` at once when the system has it. Resolves then, or when the
 * connection is closed. The answer to a pipelined request waits for its turn.
 */
const sendHead = ({ req: { socket }, res, state }: Context): Promise<void> =>
  new Promise((resolve) => {
    if (socket.destroyed) return resolve();
    socket.once('close', resolve);
    res.write('', (error) => {
      socket.off('close', resolve);
      // Data discarded by a closed connection is not reported as an error.
      state.headSent = !error && !socket.destroyed && !socket.errored;
      resolve();
    });
  });

/**
 * Outermost, because all headers must be set. Sends the head of a charged answer alone, and its body only
 * when the system has the head. This distinguishes an answer of which no byte was sent (its turn never came,
 * the client was gone, memory was short) from one that was interrupted.
 */
export const headBeforeBody: Middleware = async (ctx, next) => {
  await next();
  // An error answer is not charged.
  if (ctx.state.headFirst && ctx.status === 200) await sendHead(ctx);
};

/**
 * Closes the file that an answer is sent from when its connection is closed. Koa does so only for the answer
 * being sent; files of pipelined requests would stay open.
 */
export const closeResponseFile: Middleware = async (ctx, next) => {
  await next();
  onResponseEnd(ctx, () => {
    if (ctx.body instanceof Readable) ctx.body.destroy();
  });
};
