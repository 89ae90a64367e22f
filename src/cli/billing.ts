import { type BillingOptions, standardBilling } from '../billing/price.ts';
import type { Config } from '../config.ts';

/** Prices and free previews as configured. A reservation outlives every request. */
export const billingOf = (config: Config): BillingOptions => ({
  prices: { preview: config.pricePreview, full: config.priceFull },
  freePreviews: { perMonth: config.freePreviewsMonth, perDay: config.freePreviewsDay },
  reservationSeconds: Math.max(standardBilling.reservationSeconds, 2 * config.timeout),
});
