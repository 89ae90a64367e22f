import { unavailable } from '../../errors.ts';
import type { FairScheduler } from '../../limits/fairScheduler.ts';
import { overloaded } from '../../limits/limitErrors.ts';
import { retrySeconds } from '../../limits/retryAfter.ts';
import type { Health } from '../../ops/health.ts';
import { accountOf, type Middleware } from '../context.ts';

/** 503 until the network is warmed up, and during shutdown. */
export const available =
  (health: Health): Middleware =>
  async (_ctx, next) => {
    if (health.phase === 'starting')
      throw unavailable('starting', 'The service is starting up. Try again.', {
        retryAfter: retrySeconds.starting,
      });
    if (health.phase === 'stopping')
      throw unavailable('stopping', 'The service is shutting down. Try again.');
    await next();
  };

/** 503 before the body is read, while even the shortest recent light job would be refused. */
export const overload =
  (scheduler: Pick<FairScheduler, 'refusal'>): Middleware =>
  async (ctx, next) => {
    const busy = scheduler.refusal(accountOf(ctx).id, ctx.state.deadline);
    if (busy) throw overloaded(busy);
    await next();
  };
