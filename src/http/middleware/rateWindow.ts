import type { RateLimit } from '../../limits/rate.ts';
import { tooMany } from '../../limits/refuse.ts';
import { accountOf, type Middleware } from '../context.ts';

/** Refuses before the body is read while the account's window is used up. */
export const rateWindow =
  (rate: RateLimit): Middleware =>
  async (ctx, next) => {
    const state = await rate.usedUp(accountOf(ctx).id);
    if (state) throw tooMany(state, `All ${state.limit} megapixels of this minute are used up.`);
    await next();
  };
