import Koa from 'koa';
import type { Ledger } from '../billing/ledger.ts';
import type { Purchases } from '../billing/stripeCheckout.ts';
import type { Cutout } from '../cutout/cutout.ts';
import type { TakeImage } from '../improve/takeImage.ts';
import type { Attempts } from '../limits/attempts.ts';
import type { FairScheduler } from '../limits/fairScheduler.ts';
import type { MemoryBudget } from '../limits/memoryBudget.ts';
import type { RateLimit } from '../limits/rate.ts';
import type { Health } from '../ops/health.ts';
import type { Logger } from '../ops/log.ts';
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
import { type AdminParts, adminRoutes } from './route/admin/route.ts';
import { billingRoutes } from './route/billing/route.ts';
import type { ConsoleParts } from './route/console/access.ts';
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

interface AppParts extends ReadinessParts {
  readonly version: string;
  readonly logger: Logger;
  /** Called for every request, in addition to the log. */
  readonly recorders?: readonly Recorder[];
  /** Time limit of a request in seconds. */
  readonly timeout: number;
  readonly authenticate: Authenticate;
  readonly ledger: Ledger;
  readonly rate: RateLimit;
  /** The scheduler of the use case, for refusals before an upload. */
  readonly scheduler: Pick<FairScheduler, 'refusal'>;
  /** Budget of bodies and answers. */
  readonly memory: MemoryBudget;
  readonly cutout: Cutout;
  readonly takeImage: TakeImage;
  /** The operators' API; requires the token. */
  readonly admin?: AdminParts & { readonly token: string };
  /** Metrics on this port; require the token. */
  readonly metrics?: { readonly metrics: Metrics; readonly token: string };
  /** The shop for credits. */
  readonly purchases?: Purchases;
  /** Unknown keys and wrong tokens, by address. */
  readonly attempts: Attempts;
  /** Number of proxies in front whose X-Forwarded-For is trusted; 0: none. */
  readonly proxies?: number;
  /** Folder of the built pages (web/); absent: none are served. */
  readonly pages?: string;
  /** The console's API and sign-in. */
  readonly console?: ConsoleParts & Pick<SignInParts, 'secure' | 'signUpCredits'>;
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
  const { logger, health, authenticate, attempts, memory, rate, cutout, takeImage } = parts;
  const { admin, purchases, metrics, pages, console: people } = parts;
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
    accountRoute([authenticateKey], parts.ledger),
    improveRoute([authenticateKey, available(health), improveBody, keyAfterBody], takeImage),
    ...(admin ? adminRoutes([tokenGuard(admin.token, 'operator', attempts)], smallBody, admin) : []),
    ...(purchases ? billingRoutes(billingGuards, purchases, logger) : []),
    ...healthRoutes(parts),
    ...(metrics ? [metricsRoute(metrics.metrics, metrics.token, attempts)] : []),
    ...docsRoutes(parts.version, people?.origin),
    ...(pages ? pagesRoutes(pages) : []),
    ...(people ? consoleRoutes(people, receiveBody(memory, consoleBodyLimits)) : []),
    ...(people ? signInRoutes({ ...people, logger }) : []),
  ];
}

/** Creates the application from its parts; opens nothing and does not listen. */
export function createApp(parts: AppParts): Koa<State, object> {
  const { logger, proxies = 0 } = parts;
  const app = new Koa<State, object>({ proxy: proxies > 0, maxIpsCount: proxies });
  // Koa's own handler is reached only after an answer has begun: by a broken connection.
  app.on('error', (error: unknown) => logger.debug({ err: error }, 'connection'));
  app.use(headBeforeBody);
  app.use(requestId);
  app.use(forwarded(proxies, logger));
  app.use(record([...(parts.recorders ?? []), requestLog(logger)], logger));
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
