import { Readable } from 'node:stream';
import type { Middleware } from '../context.ts';
import { onceEnded } from '../ended.ts';

/**
 * Closes the file that an answer is sent from when its connection is gone. Koa does so too, but only for answers whose
 * turn has come: those of requests sent ahead would keep theirs open for ever.
 */
export const closeBody: Middleware = async (ctx, next) => {
  await next();
  onceEnded(ctx, () => {
    if (ctx.body instanceof Readable) ctx.body.destroy();
  });
};
