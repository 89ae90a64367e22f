import { Readable } from 'node:stream';
import type { Middleware } from '../context.ts';
import { onResponseEnd } from '../onResponseEnd.ts';

/**
 * Closes the file that an answer is sent from when its connection is gone. Koa does so too, but only for answers whose
 * turn has come: those of requests sent ahead would keep theirs open for ever.
 */
export const closeResponseFile: Middleware = async (ctx, next) => {
  await next();
  onResponseEnd(ctx, () => {
    if (ctx.body instanceof Readable) ctx.body.destroy();
  });
};
