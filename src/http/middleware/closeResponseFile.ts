import { Readable } from 'node:stream';
import type { Middleware } from '../context.ts';
import { onResponseEnd } from '../onResponseEnd.ts';

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
