import type { Logger } from '../../ops/log.ts';
import { outcomeOf, type Recorder, type RequestRecord } from '../../ops/record.ts';
import type { Context, Middleware } from '../context.ts';
import { onResponseEnd } from '../onResponseEnd.ts';

/** Of a request that `head` refused Koa may find none: it throws then. */
function pathOf(ctx: Context): string {
  try {
    return ctx.path;
  } catch {
    return '';
  }
}

/**
 * Tells the recorders of a request when it is worked off and its answer is out or its connection broken. Nobody is left
 * to hear of a fault then, so that of a recorder is logged here, and the others are told all the same.
 */
export const record =
  (recorders: readonly Recorder[], logger: Logger): Middleware =>
  async (ctx, next) => {
    const start = performance.now();
    const tell = (delivered: boolean) => {
      const { requestId, account, telemetry, route = 'none' } = ctx.state;
      // One that lingers has its answer already.
      const status = delivered || ctx.respond === false ? ctx.res.statusCode : 499;
      const told: RequestRecord = {
        requestId,
        method: ctx.method,
        route,
        path: pathOf(ctx),
        status,
        outcome: outcomeOf(status),
        start,
        ms: performance.now() - start,
        account: account?.id,
        attributes: telemetry.attributes,
        spans: telemetry.spans,
        traceparent: ctx.get('traceparent'),
      };
      for (const recorder of recorders) {
        try {
          recorder(told);
        } catch (error) {
          logger.error({ request: requestId, err: error }, 'record');
        }
      }
    };
    const ended = new Promise<boolean>((resolve) => onResponseEnd(ctx, resolve));
    await next();
    // Not awaited: the answer goes out once all middlewares are through.
    ended.then(tell).catch((error: unknown) => logger.error({ err: error }, 'record'));
  };
