import Koa from 'koa';
import type { Cutout } from '../cutout/cutout.ts';
import type { TakeImage } from '../improve/takeImage.ts';
import type { FairScheduler } from '../limits/fairScheduler.ts';
import type { MemoryBudget } from '../limits/memoryBudget.ts';
import type { Health } from '../ops/health.ts';
import type { Metrics } from '../ops/metrics.ts';
import { type Recorder, requestLog } from '../ops/record.ts';
import { consoleBodyLimits, imageBodyLimits, smallBodyLimits } from './body/limits.ts';
import type { Middleware, State } from './context.ts';
import { type Authenticate, auth, authAfterBody, tokenGuard } from './middleware/auth.ts';
import { cors } from './middleware/cors.ts';
import { deadline } from './middleware/deadline.ts';
import { closeResponseFile, headBeforeBody } from './middleware/delivery.ts';
import { errors } from './middleware/errors.ts';
import { forwarded } from './middleware/forwarded.ts';
import { available, overload } from './middleware/overload.ts';
import { rateHeadersOnRefusal, rateWindow } from './middleware/rateWindow.ts';
import { receiveBody, receiveRawBody } from './middleware/receiveBody.ts';
import { record, requestId } from './middleware/record.ts';
import { checkTargetAndHost, mergeSlashes } from './middleware/requestTarget.ts';
import { accountRoute } from './route/account/route.ts';
import { adminRoutes } from './route/admin/route.ts';
import { billingRoutes } from './route/billing/route.ts';
import { consoleRoutes } from './route/console/route.ts';
import { cutoutRoute } from './route/cutout/route.ts';
import { cutoutFields } from './route/cutout/schema.ts';
import { docsRoutes } from './route/docs/route.ts';
import { healthRoutes, type ReadinessParts } from './route/health/route.ts';
import { improveFields, improveRoute } from './route/improve/route.ts';
import { metricsRoute } from './route/metrics/route.ts';
import { pagesRoutes } from './route/pages/route.ts';
import { type SignInParts, signInRoutes } from './route/signin/route.ts';
import { createRouter, type Route } from './router.ts';

export interface AppParts extends ReadinessParts, SignInParts {
  readonly version: string;
  /** Called for every request, in addition to the log. */
  readonly recorders: readonly Recorder[];
  /** Time limit of a request in seconds. */
  readonly timeout: number;
  /** The scheduler of the use case, for refusals before an upload. */
  readonly scheduler: Pick<FairScheduler, 'refusal'>;
  /** Budget of bodies and answers. */
  readonly memory: MemoryBudget;
  readonly cutout: Cutout;
  readonly takeImage: TakeImage;
  /** Token of the operators' API; absent: there is none. */
  readonly adminToken: string | undefined;
  /** Metrics on this port, which require the token; both absent: there are none. */
  readonly metrics: Metrics | undefined;
  readonly metricsToken: string | undefined;
  /** Number of proxies in front whose X-Forwarded-For is trusted; 0: none. */
  readonly proxies: number;
  /** Folder of the built pages (web/). */
  readonly pages: string;
}

/** Kept-alive connections would outlive a stopping process. */
const closeWhenStopping =
  (health: Health): Middleware =>
  async (ctx, next) => {
    await next();
    if (health.phase === 'draining' || health.phase === 'stopping') ctx.set('Connection', 'close');
  };

/** Returns all routes, each with its guards. */
function routesOf(parts: AppParts): Route[] {
  const { logger, health, stores, attempts, memory, rate, cutout, takeImage } = parts;
  const { adminToken, purchases, metrics, metricsToken } = parts;
  const authenticate: Authenticate = (hash) => stores.accounts.authenticate(hash);
  // Guards are before a body, so that a refused request uploads nothing, and after it, because uploading may take long.
  const authenticateKey = auth(authenticate, attempts);
  const keyAfterBody = authAfterBody(authenticate);
  const cutoutBody = receiveBody(memory, imageBodyLimits, cutoutFields);
  const improveBody = receiveBody(memory, imageBodyLimits, improveFields);
  const smallBody = receiveBody(memory, smallBodyLimits);
  const cutoutGuards = [
    rateHeadersOnRefusal(rate),
    authenticateKey,
    rateWindow(rate),
    available(health),
    overload(parts.scheduler),
    cutoutBody,
    keyAfterBody,
  ];
  const billingGuards = {
    key: authenticateKey,
    body: [smallBody, keyAfterBody],
    raw: receiveRawBody(memory),
    attempts,
  };
  return [
    cutoutRoute(cutoutGuards, cutout, logger),
    accountRoute([authenticateKey], stores.ledger),
    improveRoute([authenticateKey, available(health), improveBody, keyAfterBody], takeImage),
    ...(adminToken ? adminRoutes([tokenGuard(adminToken, 'operator', attempts)], smallBody, stores) : []),
    ...(purchases ? billingRoutes(billingGuards, purchases, logger) : []),
    ...healthRoutes(parts),
    ...(metrics && metricsToken ? [metricsRoute(metrics, metricsToken, attempts)] : []),
    ...docsRoutes(parts.version, parts.origin),
    ...pagesRoutes(parts.pages),
    ...consoleRoutes(parts, receiveBody(memory, consoleBodyLimits)),
    ...signInRoutes(parts),
  ];
}

/** Creates the application from its parts; opens nothing and does not listen. */
export function createApp(parts: AppParts): Koa<State, object> {
  const { logger, proxies } = parts;
  const app = new Koa<State, object>({ proxy: proxies > 0, maxIpsCount: proxies });
  // Koa's own handler is reached only after an answer has begun: by a broken connection.
  app.on('error', (error: unknown) => logger.debug({ err: error }, 'connection'));
  app.use(headBeforeBody);
  app.use(requestId);
  app.use(forwarded(proxies, logger));
  app.use(record([...parts.recorders, requestLog(logger)], logger));
  app.use(closeResponseFile);
  app.use(cors);
  app.use(closeWhenStopping(parts.health));
  app.use(errors(logger));
  app.use(deadline(parts.timeout));
  app.use(checkTargetAndHost);
  app.use(mergeSlashes);
  for (const middleware of createRouter(routesOf(parts))) app.use(middleware);
  return app;
}
