import test from 'ava';
import { loadConfig } from '../../src/config/readConfig.ts';
import { billingOf, improveOf, purchasesOf } from '../../src/server/options.ts';
import { testStores } from '../support/stores.ts';

test('prices and free previews are the configured ones; a reservation outlives every request', async (t) => {
  const config = loadConfig({
    CUTOUT_PRICE_PREVIEW: '0',
    CUTOUT_PRICE_FULL: '2.5',
    CUTOUT_FREE_PREVIEWS_MONTH: '3',
    CUTOUT_FREE_PREVIEWS_DAY: '2',
    CUTOUT_TIMEOUT: '3600',
  });
  const billing = billingOf(config.billing, config.http.timeout);
  t.is(billing.prices.preview as number, 0);
  t.is(billing.prices.full as number, 10);
  t.deepEqual(billing.freePreviews, { perMonth: 3, perDay: 2 });
  t.true(billing.reservationSeconds > 3600);
});

test('nothing is for sale unless configured', async (t) => {
  t.is(purchasesOf(loadConfig({}).billing, 'https://shop.example'), undefined);
  const options = purchasesOf(
    loadConfig({
      CUTOUT_PACKS: '50=9 EUR',
      CUTOUT_STRIPE_SECRET_KEY: 'sk_test_1',
      CUTOUT_STRIPE_WEBHOOK_SECRET: 'whsec_1',
      CUTOUT_PUBLIC_URL: 'https://shop.example',
    }).billing,
    'https://shop.example',
  );
  t.like(options, {
    secretKey: 'sk_test_1',
    webhookSecret: 'whsec_1',
    returnUrl: 'https://shop.example/console',
  });
  t.is(options?.packs.length, 1);
});

test('images handed in are stored in the data folder or a bucket', async (t) => {
  const { database } = await testStores(t);
  t.like(improveOf(loadConfig({ CUTOUT_DATA_DIR: '/srv/cutout' }).improve, database), {
    folder: '/srv/cutout/improve',
    perDay: 100,
    s3: undefined,
  });
  const there = improveOf(
    loadConfig({
      CUTOUT_S3_ENDPOINT: 'https://s3.example/images',
      CUTOUT_S3_REGION: 'eu-central-1',
      CUTOUT_S3_ACCESS_KEY_ID: 'access',
      CUTOUT_S3_SECRET_ACCESS_KEY: 'secret',
    }).improve,
    database,
  );
  t.deepEqual(there.s3, {
    endpoint: 'https://s3.example/images',
    region: 'eu-central-1',
    accessKeyId: 'access',
    secretAccessKey: 'secret',
  });
});
