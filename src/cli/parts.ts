import { type BillingOptions, standardBilling } from '../billing/price.ts';
import type { PurchaseOptions } from '../billing/purchases.ts';
import type { Config } from '../config.ts';
import type { OpenImproveOptions } from '../improve/open.ts';
import type { Sql } from '../store/database.ts';
import type { StoreOptions } from '../store/open.ts';

/** Prices and free previews as configured. A reservation outlives every request. */
export const billingOf = (config: Config): BillingOptions => ({
  prices: { preview: config.pricePreview, full: config.priceFull },
  freePreviews: { perMonth: config.freePreviewsMonth, perDay: config.freePreviewsDay },
  reservationSeconds: Math.max(standardBilling.reservationSeconds, 2 * config.timeout),
});

/** Where the books lie. */
export const storeOf = ({ dataDir, databaseUrl }: Config): StoreOptions => ({
  dataDir,
  databaseUrl,
});

/** Undefined when nothing is sold. */
export function purchasesOf(config: Config): PurchaseOptions | undefined {
  const { packs, stripeSecretKey: secretKey, stripeWebhookSecret: webhookSecret } = config;
  const { stripeSuccessUrl: successUrl, stripeCancelUrl: cancelUrl } = config;
  if (!packs || !secretKey || !webhookSecret || !successUrl || !cancelUrl) return undefined;
  return { packs, secretKey, webhookSecret, successUrl, cancelUrl };
}

export function improveOf(config: Config, database: Sql): OpenImproveOptions {
  const { improvePerDay: perDay, improveDir: folder, s3Region: region } = config;
  const { s3Endpoint: endpoint, s3AccessKeyId: accessKeyId, s3SecretAccessKey: secretAccessKey } = config;
  const complete = endpoint && accessKeyId && secretAccessKey;
  const s3 = complete ? { endpoint, region, accessKeyId, secretAccessKey } : undefined;
  return { database, perDay, folder, s3 };
}
