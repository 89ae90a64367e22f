import type { AppError } from '../../errors.ts';
import type { Logger } from '../../ops/log.ts';
import type { Middleware } from '../context.ts';

/**
 * One line a request, written when the answer was sent or the connection broke. Faults of our own are
 * logged with their cause, beside the line.
 */
export const log =
  (logger: Logger): Middleware =>
  async (ctx, next) => {
    const started = performance.now();
    ctx.res.once('close', () => {
      const { requestId, account, facts } = ctx.state;
      const sent = ctx.res.writableFinished;
      logger.info({
        request: requestId,
        method: ctx.method,
        path: ctx.path,
        // 499: the client went away before it had the whole answer.
        status: sent ? ctx.res.statusCode : 499,
        ms: Math.round((performance.now() - started) * 10) / 10,
        account: account?.id,
        ...facts,
      });
    });
    await next();
  };

/** Puts an error into the request's line, and a fault of our own with cause and stack beside it. */
export function logError(logger: Logger, requestId: string, facts: Record<string, unknown>, error: AppError) {
  facts['error'] = error.code;
  if (error.status < 500 || error.cause === undefined) facts['detail'] = error.detail;
  if (error.reported) logger.error({ request: requestId, err: error.cause ?? error }, error.code);
}
