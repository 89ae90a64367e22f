import { z } from 'zod';
import { quarters, toCredits } from '../../../billing/price.ts';
import type { Purchases } from '../../../billing/stripeCheckout.ts';
import { fail } from '../../../errors.ts';
import type { Context } from '../../context.ts';
import { inBody, parse, text } from '../../requestParameters.ts';
import type { Route } from '../../router.ts';
import { accountIdOf, type ConsoleParts, type Endpoints } from './access.ts';
import type { PackInfo, ServiceOptions } from './api.ts';

const checkoutRequest = z.object({ pack: text(100) });

export const packInfos = ({ packs }: Purchases): PackInfo[] =>
  packs.map(({ id, credits, price, currency }) => ({ id, credits: toCredits(credits), price, currency }));

/** Packs of credits for sale; empty if there are none. */
export function purchaseRoutes({ purchases }: ConsoleParts, { owner }: Endpoints): Route[] {
  if (!purchases) return [];
  const checkout = async (ctx: Context) => {
    const url = await purchases.checkout(accountIdOf(ctx), parse(checkoutRequest, inBody(ctx)).pack);
    if (url === undefined) throw fail('not_found', { detail: 'There is no such pack.' });
    return { url };
  };
  return [owner.get('packs', () => packInfos(purchases)), owner.post('checkout', checkout)];
}

/** Public settings of the service. */
export function optionRoutes({ billing: { prices } }: ConsoleParts, { anyone }: Endpoints): Route[] {
  const options: ServiceOptions = {
    creditStep: toCredits(quarters(1)),
    prices: { preview: toCredits(prices.preview), full: toCredits(prices.full) },
  };
  return [anyone.get('options', () => options)];
}
