import type { Ledger } from '../../../billing/ledger.ts';
import { toCredits } from '../../../billing/price.ts';
import { accountOf, type Middleware, setHeaders } from '../../context.ts';
import type { Route } from '../../router.ts';

/** `GET /v1.0/account`: these six values only, as clients fail on any other (docs/contract.md section 8). */
export function accountRoute(before: readonly Middleware[], ledger: Ledger): Route {
  const handler: Middleware = async (ctx) => {
    const { id } = accountOf(ctx);
    const { credits, freeCalls } = await ledger.balance(id);
    const { leftToday } = await ledger.freePreviews(id);
    const total = toCredits(credits);
    // A header, because the body may have no other value.
    setHeaders(ctx, { 'X-Free-Previews-Today': String(leftToday) });
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
