import { AppError } from '../../errors.ts';
import type { RateLimit } from '../../limits/rate.ts';
import { windowUsedUp } from '../../limits/refuse.ts';
import { accountOf, type Middleware } from '../context.ts';
import { rateHeaders } from '../errorHeaders.ts';

/**
 * Adds the rate headers (docs/contract.md section 11) to every 429 of a route, also before the account is
 * known: clients fail on a missing number.
 */
export const rateHeadersOnRefusal =
  (rate: RateLimit): Middleware =>
  async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      if (error instanceof AppError && error.status === 429 && !error.window)
        ctx.set(rateHeaders(rate.refusal(error.retryAfter ?? 0)));
      throw error;
    }
  };

/** 429 before the body is read, while the account's window is used up. */
export const rateWindow =
  (rate: RateLimit): Middleware =>
  async (ctx, next) => {
    const state = await rate.usedUpState(accountOf(ctx).id);
    if (state) throw windowUsedUp(state);
    await next();
  };
