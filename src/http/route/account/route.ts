import { toCredits } from '../../../billing/price.ts';
import type { Balances } from '../../../billing/types.ts';
import { accountOf, type Middleware } from '../../context.ts';
import type { Route } from '../../router.ts';

/**
 * `GET /v1.0/account`: exactly these six values, because a client fails on any other (docs/contract.md
 * section 8).
 */
export function accountRoute(before: readonly Middleware[], balances: Balances): Route {
  const handler: Middleware = async (ctx) => {
    const { credits, freeCalls } = await balances.balance(accountOf(ctx).id);
    const total = toCredits(credits);
    ctx.body = {
      data: {
        attributes: {
          credits: { subscription: 0, payg: total, enterprise: 0, total },
          api: { free_calls: freeCalls, sizes: 'all' },
        },
      },
    };
  };
  return { method: 'GET', paths: ['/v1.0/account'], handlers: [...before, handler] };
}
