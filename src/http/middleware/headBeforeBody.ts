import type { Context, Middleware } from '../context.ts';

/**
 * Sends the head of the answer and calls `sent` when the system has it. Resolves then, or when the connection
 * is closed. The answer to a pipelined request waits for its turn.
 */
const sendHead = ({ req: { socket }, res }: Context, sent: () => void): Promise<void> =>
  new Promise((resolve) => {
    if (socket.destroyed) return resolve();
    socket.once('close', resolve);
    res.write('', (error) => {
      socket.off('close', resolve);
      // Data discarded by a closed connection is not reported as an error.
      if (!error && !socket.destroyed && !socket.errored) sent();
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
  const { onHeadSent } = ctx.state;
  // An error answer is not charged.
  if (onHeadSent && ctx.status === 200) await sendHead(ctx, onHeadSent);
};
