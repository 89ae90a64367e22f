import type { FairScheduler } from '../../limits/fairScheduler.ts';
import { overloaded } from '../../limits/refuse.ts';
import { accountOf, type Middleware } from '../context.ts';

/** 503 before the body is read, while even the shortest recent light job would be refused. */
export const overload =
  (scheduler: Pick<FairScheduler, 'refusal'>): Middleware =>
  async (ctx, next) => {
    const busy = scheduler.refusal(accountOf(ctx).id, ctx.state.deadline);
    if (busy) throw overloaded(busy);
    await next();
  };
