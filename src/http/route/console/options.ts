import { type PriceList, quarters, toCredits } from '../../../billing/price.ts';
import type { Route } from '../../router.ts';
import type { Endpoints } from './access.ts';
import type { ServiceOptions } from './api.ts';

/** Public settings of the service. */
export function optionRoutes({ prices }: { readonly prices: PriceList }, { anyone }: Endpoints): Route[] {
  const options: ServiceOptions = {
    creditStep: toCredits(quarters(1)),
    prices: { preview: toCredits(prices.preview), full: toCredits(prices.full) },
  };
  return [anyone.get('options', () => options)];
}
