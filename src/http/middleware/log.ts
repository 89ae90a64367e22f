import type { AppError } from '../../errors.ts';
import type { Logger } from '../../ops/log.ts';
import type { Middleware } from '../context.ts';
import { onceEnded } from '../ended.ts';

/**
 * One line a request, written when it is worked off and its answer is out or its connection broken. Faults of our own are
 * logged with their cause, beside the line.
 */
export const log =
  (logger: Logger): Middleware =>
  async (ctx, next) => {
    const started = performance.now();
    const write = (delivered: boolean) => {
      const { requestId, account, facts } = ctx.state;
      // Probes come every few seconds and would drown the rest.
      const level = ctx.path.startsWith('/health/') ? 'debug' : 'info';
      logger[level]({
        request: requestId,
        method: ctx.method,
        path: ctx.path,
        // 499: the client went away before it had the whole answer. One that lingers has it already.
        status: delivered || ctx.respond === false ? ctx.res.statusCode : 499,
        ms: Math.round((performance.now() - started) * 10) / 10,
        account: account?.id,
        ...facts,
      });
    };
    const ended = new Promise<boolean>((resolve) => onceEnded(ctx, resolve));
    await next();
    // Not awaited: the answer goes out once all middlewares are through.
    void ended.then(write);
  };

/** Puts an error into the request's line, and a fault of our own with cause and stack beside it. */
export function logError(logger: Logger, requestId: string, facts: Record<string, unknown>, error: AppError) {
  facts['error'] = error.code;
  if (error.status < 500 || error.cause === undefined) facts['detail'] = error.detail;
  if (error.reported) logger.error({ request: requestId, err: error.cause ?? error }, error.code);
}
