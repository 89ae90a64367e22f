import { randomUUID } from 'node:crypto';
import type { Logger } from '../../ops/log.ts';
import { outcomeOf, type Recorder, type RequestRecord } from '../../ops/record.ts';
import { RequestTelemetry } from '../../ops/telemetry.ts';
import { type Context, type Middleware, setHeaders } from '../context.ts';
import { onResponseEnd } from '../onResponseEnd.ts';

/** Koa may fail to parse the path of a request that `checkTargetAndHost` refused. */
function pathOf(ctx: Context): string {
  try {
    return ctx.path;
  } catch {
    return '';
  }
}

/**
 * Passes a request to the recorders when it is processed and its answer is sent or its connection closed. An
 * error of one recorder is logged and does not affect the others.
 */
export const record =
  (recorders: readonly Recorder[], logger: Logger): Middleware =>
  async (ctx, next) => {
    const start = performance.now();
    const report = (delivered: boolean) => {
      const { requestId, account, telemetry, route = 'none' } = ctx.state;
      // A lingering connection already has its answer.
      const status = delivered || ctx.respond === false ? ctx.res.statusCode : 499;
      const record: RequestRecord = {
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
          recorder(record);
        } catch (error) {
          logger.error({ request: requestId, err: error }, 'record');
        }
      }
    };
    const ended = new Promise<boolean>((resolve) => onResponseEnd(ctx, resolve));
    await next();
    // Not awaited: the answer is sent after all middlewares have returned.
    ended.then(report).catch((error: unknown) => logger.error({ err: error }, 'record'));
  };

/** Creates the request's id for answer and log. An id sent by the client is ignored. */
export const requestId: Middleware = async (ctx, next) => {
  ctx.state.requestId = randomUUID();
  ctx.state.telemetry = new RequestTelemetry();
  setHeaders(ctx, { 'X-Request-Id': ctx.state.requestId });
  await next();
};
