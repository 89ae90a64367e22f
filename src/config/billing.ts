import { formatPacks, parsePacks } from '../billing/packs.ts';
import { formatCredits, standardBilling } from '../billing/price.ts';
import { UserError } from '../errors.ts';
import { integer, price, token } from './parsers.ts';
import { optional, requireTogether, type Settings, setting, type Values } from './types.ts';

const packs = (text: string) => {
  try {
    return parsePacks(text);
  } catch {
    throw new Error('different packs of credits like 50=9.00 EUR, 500=49 EUR');
  }
};

const { prices, freePreviews } = standardBilling;

export const billingSettings = {
  pricePreview: setting('CUTOUT_PRICE_PREVIEW', formatCredits(prices.preview), price, {
    show: formatCredits,
  }).help('Credits for a preview when no free one is left.'),
  priceFull: setting('CUTOUT_PRICE_FULL', formatCredits(prices.full), price, { show: formatCredits }).help(
    'Credits for any larger result. 0 with 0 for previews: no billing.',
  ),
  freePreviewsMonth: setting(
    'CUTOUT_FREE_PREVIEWS_MONTH',
    String(freePreviews.perMonth),
    integer(0, 1_000_000),
  ).help('Free previews of an account in a calendar month (UTC). 0 gives none.'),
  freePreviewsDay: setting(
    'CUTOUT_FREE_PREVIEWS_DAY',
    String(freePreviews.perDay),
    integer(0, 1_000_000),
  ).help('Free previews of an account on one day (UTC), within those of the month. 0 is no daily limit.'),
  packs: optional('CUTOUT_PACKS', packs, { show: formatPacks }).help(
    'Packs of credits to sell through Stripe, e.g. 50=9.00 EUR, 500=49 EUR. Not set: nothing is sold.',
  ),
  stripeSecretKey: optional('CUTOUT_STRIPE_SECRET_KEY', token, {
    secret: true,
  }).help("Stripe's secret key (sk_… or rk_…)."),
  stripeWebhookSecret: optional('CUTOUT_STRIPE_WEBHOOK_SECRET', token, { secret: true }).help(
    'Secret of the webhook that points at /billing/stripe (whsec_…).',
  ),
} as const satisfies Settings;

export type BillingConfig = Values<typeof billingSettings>;

/** Buyers return to the console, which needs a public address. Throws UserError. */
export function checkBilling(values: BillingConfig, publicUrl: string | undefined): void {
  requireTogether(billingSettings, values, ['packs', 'stripeSecretKey', 'stripeWebhookSecret']);
  if (values.packs && !publicUrl)
    throw new UserError('CUTOUT_PACKS requires CUTOUT_PUBLIC_URL, which is not set.');
}
