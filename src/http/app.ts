import Koa from 'koa';
import type { Purchases } from '../billing/purchases.ts';
import type { Balances } from '../billing/reservation.ts';
import type { Cutout } from '../cutout/cutout.ts';
import type { TakeImage } from '../improve/takeImage.ts';
import type { Attempts } from '../limits/attempts.ts';
import type { FairScheduler } from '../limits/fairScheduler.ts';
import type { MemoryBudget } from '../limits/memory.ts';
import type { RateLimit } from '../limits/rate.ts';
import type { Health } from '../ops/health.ts';
import type { Logger } from '../ops/log.ts';
import type { Metrics } from '../ops/metrics.ts';
import type { Recorder } from '../ops/record.ts';
import { requestLog } from '../ops/requestLog.ts';
import { CONSOLE, SETTINGS } from './body/limits.ts';
import type { Middleware, State } from './context.ts';
import { type Authenticate, auth } from './middleware/auth.ts';
import { available } from './middleware/available.ts';
import { closeResponseFile } from './middleware/closeResponseFile.ts';
import { cors } from './middleware/cors.ts';
import { deadline } from './middleware/deadline.ts';
import { errors } from './middleware/errors.ts';
import { forwarded } from './middleware/forwarded.ts';
import { head } from './middleware/head.ts';
import { headBeforeBody } from './middleware/headBeforeBody.ts';
import { overload } from './middleware/overload.ts';
import { rateHeadersOnRefusal, rateWindow } from './middleware/rateWindow.ts';
import { receiveBody, receiveRawBody } from './middleware/receiveBody.ts';
import { record } from './middleware/record.ts';
import { requestId } from './middleware/requestId.ts';
import { tokenGuard } from './middleware/token.ts';
import { accountRoute } from './route/account/route.ts';
import { type AdminParts, adminRoutes } from './route/admin/route.ts';
import { billingRoutes } from './route/billing/route.ts';
import { type ConsoleParts, consoleRoutes } from './route/console/route.ts';
import { cutoutRoute } from './route/cutout/route.ts';
import { docsRoutes } from './route/docs/route.ts';
import { healthRoutes } from './route/health/route.ts';
import { improveRoute } from './route/improve/route.ts';
import { metricsRoute } from './route/metrics/route.ts';
import { pagesRoutes } from './route/pages/route.ts';
import { type SignInParts, signInRoutes } from './route/signin/route.ts';
import { createRouter } from './router.ts';

export interface AppParts {
  readonly version: string;
  readonly logger: Logger;
  readonly health: Health;
  /** Told of every request beside the log. */
  readonly recorders?: readonly Recorder[];
  /** Seconds a request may take. */
  readonly timeout: number;
  readonly authenticate: Authenticate;
  readonly balances: Balances;
  readonly rate: RateLimit;
  /** The scheduler of the use case, for refusals before an upload. */
  readonly scheduler: Pick<FairScheduler, 'refusal'>;
  /** What bodies and answers are counted against. */
  readonly memory: MemoryBudget;
  readonly cutout: Cutout;
  readonly takeImage: TakeImage;
  /** The books for operators' programs; only with a token. */
  readonly admin?: AdminParts & { readonly token: string };
  /** For Prometheus on this port; only with a token. */
  readonly metrics?: { readonly metrics: Metrics; readonly token: string };
  /** Credits for sale. */
  readonly purchases?: Purchases;
  /** Unknown keys and wrong tokens, by address. */
  readonly attempts: Attempts;
  /** Proxies in front whose X-Forwarded-For is believed; 0: none. */
  readonly proxies?: number;
  /** Folder of the built pages (web/); none are served without. */
  readonly pages?: string;
  /** What the console's pages talk to, and the way in. */
  readonly console?: ConsoleParts & Pick<SignInParts, 'secure' | 'signUpCredits'>;
}

/** A kept connection would outlive the process that is going down. */
const closeWhenStopping =
  (health: Health): Middleware =>
  async (ctx, next) => {
    await next();
    if (health.phase === 'draining' || health.phase === 'stopping') ctx.set('Connection', 'close');
  };

/** The application from its parts; nothing is opened, nothing listens. */
export function createApp(parts: AppParts): Koa<State, object> {
  const { logger, health, timeout, authenticate, balances, rate, cutout, takeImage, admin, purchases } =
    parts;
  const app = new Koa<State, object>({ proxy: Boolean(parts.proxies), maxIpsCount: parts.proxies ?? 0 });
  // Whatever reaches Koa's own handler happened after the answer began: a broken connection.
  app.on('error', (error: unknown) => logger.debug({ err: error }, 'connection'));
  app.use(headBeforeBody);
  app.use(requestId);
  app.use(forwarded(parts.proxies ?? 0, logger));
  app.use(record([...(parts.recorders ?? []), requestLog(logger)], logger));
  app.use(closeResponseFile);
  app.use(cors);
  app.use(closeWhenStopping(health));
  app.use(errors(logger));
  app.use(deadline(timeout));
  app.use(head);
  const key = auth(authenticate, parts.attempts);
  const images = receiveBody(parts.memory);
  const settings = receiveBody(parts.memory, SETTINGS);
  const routes = [
    cutoutRoute(
      [
        rateHeadersOnRefusal(rate),
        key,
        rateWindow(rate),
        available(health),
        overload(parts.scheduler),
        images,
      ],
      cutout,
      logger,
    ),
    accountRoute([key], balances),
    improveRoute([key, available(health), images], takeImage),
    ...(admin ? adminRoutes([tokenGuard(admin.token, 'operator', parts.attempts)], settings, admin) : []),
    ...(purchases
      ? billingRoutes(
          { key: [key], body: settings, raw: receiveRawBody(parts.memory), attempts: parts.attempts },
          purchases,
          logger,
        )
      : []),
    ...healthRoutes(health),
    ...(parts.metrics ? [metricsRoute(parts.metrics.metrics, parts.metrics.token, parts.attempts)] : []),
    ...docsRoutes(parts.version, parts.console?.origin),
    ...(parts.pages ? pagesRoutes(parts.pages) : []),
    ...(parts.console ? consoleRoutes(parts.console, receiveBody(parts.memory, CONSOLE)) : []),
    ...(parts.console ? signInRoutes({ ...parts.console, logger }) : []),
  ];
  for (const middleware of createRouter(routes)) app.use(middleware);
  return app;
}
