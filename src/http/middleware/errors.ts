import { AppError, toAppError } from '../../errors.ts';
import type { Logger } from '../../ops/log.ts';
import type { Context, Middleware } from '../context.ts';
import { answerAndLinger, isUploading } from '../linger.ts';
import { logError } from './log.ts';

export function answerError(ctx: Context, error: AppError): void {
  ctx.status = error.status;
  ctx.body = error.envelope();
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.set(error.headers);
}

/** Outermost but for id, log and CORS: whatever is thrown inside becomes the envelope of the contract. */
export const errors =
  (logger: Logger): Middleware =>
  async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = toAppError(thrown);

      logError(logger, ctx.state.requestId, ctx.state.facts, error);
      // A fault of ours is told by the request's number alone.
      const shown =
        error.id === 'internal_error'
          ? new AppError('internal_error', { detail: `Request id: ${ctx.state.requestId}` })
          : error;
      answerError(ctx, shown);
      if (isUploading(ctx)) answerAndLinger(ctx);
    }
  };
