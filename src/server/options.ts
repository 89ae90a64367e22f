import { type BillingOptions, standardBilling } from '../billing/price.ts';
import type { PurchaseOptions } from '../billing/stripeCheckout.ts';
import type { BillingConfig } from '../config/billing.ts';
import type { ImproveConfig } from '../config/improve.ts';
import type { OpenImproveOptions } from '../improve/improve.ts';
import type { Sql } from '../store/database.ts';

/** Returns prices and free previews as configured. A reservation outlives every request, which takes at most `timeout` seconds. */
export const billingOf = (billing: BillingConfig, timeout: number): BillingOptions => ({
  prices: { preview: billing.pricePreview, full: billing.priceFull },
  freePreviews: { perMonth: billing.freePreviewsMonth, perDay: billing.freePreviewsDay },
  reservationSeconds: Math.max(standardBilling.reservationSeconds, 2 * timeout),
});

/** Undefined if nothing is for sale. */
export function purchasesOf(
  { packs, stripeSecretKey: secretKey, stripeWebhookSecret: webhookSecret }: BillingConfig,
  publicUrl: string | undefined,
): PurchaseOptions | undefined {
  if (!packs || !secretKey || !webhookSecret || !publicUrl) return undefined;
  return { packs, secretKey, webhookSecret, returnUrl: `${publicUrl}/console` };
}

export function improveOf(improve: ImproveConfig, database: Sql): OpenImproveOptions {
  const { perDay, folder, s3Region: region } = improve;
  const { s3Endpoint: endpoint, s3AccessKeyId: accessKeyId, s3SecretAccessKey: secretAccessKey } = improve;
  const complete = endpoint && accessKeyId && secretAccessKey;
  const s3 = complete ? { endpoint, region, accessKeyId, secretAccessKey } : undefined;
  return { database, perDay, folder, s3 };
}
