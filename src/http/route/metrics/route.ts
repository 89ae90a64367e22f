import Koa from 'koa';
import type { Attempts } from '../../../limits/attempts.ts';
import type { Logger } from '../../../ops/log.ts';
import type { Metrics } from '../../../ops/metrics.ts';
import { requestLog } from '../../../ops/record.ts';
import type { Middleware, State } from '../../context.ts';
import { tokenGuard } from '../../middleware/auth.ts';
import { errors } from '../../middleware/errors.ts';
import { record, requestId } from '../../middleware/record.ts';
import { checkTargetAndHost } from '../../middleware/requestTarget.ts';
import { createRouter, type Route } from '../../router.ts';
import type { Handler } from '../../runningRequests.ts';

type Shown = Pick<Metrics, 'contentType' | 'text'>;

/** `GET /metrics` for Prometheus; requires the token if one is set. `attempts` slows down guessing it. */
export function metricsRoute(metrics: Shown, token: string | undefined, attempts: Attempts): Route {
  const handler: Middleware = async (ctx) => {
    ctx.body = await metrics.text();
    ctx.set('Content-Type', metrics.contentType);
  };
  const before = token === undefined ? [] : [tokenGuard(token, 'metrics', attempts)];
  return { method: 'GET', paths: ['/metrics'], handlers: [...before, handler] };
}

/** An application for a separate port that serves metrics only. */
export function metricsApp(
  metrics: Shown,
  token: string | undefined,
  { attempts, logger }: { readonly attempts: Attempts; readonly logger: Logger },
): Handler {
  const app = new Koa<State, object>();
  app.on('error', (error: unknown) => logger.debug({ err: error }, 'connection'));
  const routes = createRouter([metricsRoute(metrics, token, attempts)]);
  for (const middleware of [
    requestId,
    record([requestLog(logger)], logger),
    errors(logger),
    checkTargetAndHost,
    ...routes,
  ])
    app.use(middleware);
  return app.callback();
}
