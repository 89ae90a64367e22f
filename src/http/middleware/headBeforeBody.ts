import type { Context, Middleware } from '../context.ts';

/**
 * Sends the head of the answer and calls `sent` as soon as the system has it. Resolves then, or when the connection is
 * gone. Of requests that were sent ahead it waits until this one's turn has come.
 */
const sendHead = ({ req: { socket }, res }: Context, sent: () => void): Promise<void> =>
  new Promise((resolve) => {
    if (socket.destroyed) return resolve();
    socket.once('close', resolve);
    res.write('', (error) => {
      socket.off('close', resolve);
      // What a connection that is gone throws away is not told as an error.
      if (!error && !socket.destroyed && !socket.errored) sent();
      resolve();
    });
  });

/**
 * Outermost, because all headers must stand. For an answer that is paid for, the head goes out alone and its body only
 * when the system has taken the head: nothing else tells an answer of which not one byte was sent (its turn never came,
 * the client was gone already, no room was left for it) from one that was broken off.
 */
export const headBeforeBody: Middleware = async (ctx, next) => {
  await next();
  const { headSent } = ctx.state;
  // An error in the place of the answer costs nothing.
  if (headSent && ctx.status === 200) await sendHead(ctx, headSent);
};
