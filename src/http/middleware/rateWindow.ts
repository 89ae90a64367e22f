import { AppError, type RateWindow } from '../../errors.ts';
import { windowUsedUp } from '../../limits/limitErrors.ts';
import type { RateLimit } from '../../limits/rate.ts';
import { accountOf, type Middleware } from '../context.ts';

/** The three headers of docs/contract.md section 11, for successes and refusals. */
export const rateHeaders = ({ limit, remaining, reset }: RateWindow): Readonly<Record<string, string>> => ({
  'X-RateLimit-Limit': String(limit),
  'X-RateLimit-Remaining': String(remaining),
  'X-RateLimit-Reset': String(reset),
});

/** Rate headers (docs/contract.md section 11) on every 429, even before the account is known: clients need them. */
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
