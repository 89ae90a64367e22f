import test from 'ava';
import { parsePacks } from '../../src/billing/packs.ts';
import { credits } from '../../src/billing/price.ts';
import { Purchases } from '../../src/billing/stripeCheckout.ts';
import { bookPurchase } from '../../src/commands/credits.ts';
import { accountWith, type Cleanup, testStores } from '../support/stores.ts';
import { signedEvent, stripeLike } from '../support/stripe.ts';

async function shop(t: Cleanup) {
  const stores = await testStores(t);
  const account = await accountWith(stores, 0);
  const { options, asked } = await stripeLike(t);
  const purchases = new Purchases(options, (purchase) => bookPurchase(stores, purchase));
  const receive = (session: object, event: Parameters<typeof signedEvent>[1] = {}) => {
    const { body, signature } = signedEvent(
      { metadata: { account, quarter_credits: '200' }, ...session },
      event,
    );
    return purchases.receive(body, signature);
  };
  const balance = async () => (await stores.ledger.balance(account)).credits;
  return { stores, account, purchases, asked, receive, balance };
}

test('packs are parsed', async (t) => {
  t.deepEqual(parsePacks('50=9.00 EUR, 0.75=1usd,500=5000 JPY, 1=1.234 KWD'), [
    { id: '50', credits: credits(50), price: 900, currency: 'eur' },
    { id: '0.75', credits: credits(0.75), price: 100, currency: 'usd' },
    { id: '500', credits: credits(500), price: 5000, currency: 'jpy' },
    { id: '1', credits: credits(1), price: 1234, currency: 'kwd' },
  ]);
  t.deepEqual(parsePacks(''), []);
});

for (const text of [
  '50',
  '50=9',
  '50=9.001 EUR',
  '50=0 EUR',
  '0=1 EUR',
  '0.1=1 EUR',
  '5=1.5 JPY',
  '5=1 XYZ',
  '5=1 EUR,5=2 EUR',
]) {
  test(`'${text}' is refused as packs`, async (t) => {
    t.throws(() => parsePacks(text), { name: 'UserError' });
  });
}

test('a checkout has the pack, the price and the account', async (t) => {
  const { purchases, account, asked } = await shop(t);
  t.is(await purchases.checkout(account, '50'), 'https://pay.example/cs_1');
  t.deepEqual(Object.fromEntries(asked[0] ?? []), {
    mode: 'payment',
    client_reference_id: account,
    'metadata[account]': account,
    'metadata[quarter_credits]': '200',
    'line_items[0][quantity]': '1',
    'line_items[0][price_data][currency]': 'eur',
    'line_items[0][price_data][unit_amount]': '900',
    'line_items[0][price_data][product_data][name]': '50 credits',
    success_url: 'http://shop.example/console',
    cancel_url: 'http://shop.example/console',
  });
  t.is(await purchases.checkout(account, '51'), undefined);
});

test('paid credits are posted once, however often and by whichever event Stripe reports them', async (t) => {
  const { receive, account, balance, stores } = await shop(t);
  t.like(await receive({}), { outcome: 'posted', accountId: account, amount: credits(50) });
  t.is((await receive({})).outcome, 'duplicate');
  t.is(
    (await receive({}, { id: 'evt_2', type: 'checkout.session.async_payment_succeeded' })).outcome,
    'duplicate',
  );
  t.is(await balance(), credits(50));
  t.is((await receive({ id: 'cs_2' }, { id: 'evt_3' })).outcome, 'posted');
  t.is(await balance(), credits(100));
  t.deepEqual(await stores.ledger.verify(), []);
});

test('nothing is posted before the payment is received', async (t) => {
  const { receive, balance } = await shop(t);
  t.is((await receive({ payment_status: 'unpaid' })).outcome, 'ignored');
  t.is(await balance(), 0 as never);
  t.is((await receive({}, { type: 'checkout.session.async_payment_succeeded' })).outcome, 'posted');
});

test('other events, and sessions of other products, are ignored', async (t) => {
  const { receive, balance } = await shop(t);
  t.is((await receive({}, { type: 'checkout.session.expired' })).outcome, 'ignored');
  t.is((await receive({ metadata: {} })).outcome, 'ignored');
  t.is((await receive({ metadata: null })).outcome, 'ignored');
  t.is(await balance(), 0 as never);
});

test("events without Stripe's signature, or with an old one, are refused", async (t) => {
  const { purchases, account, receive, balance } = await shop(t);
  const session = { metadata: { account, quarter_credits: '200' } };
  const { body, signature } = signedEvent(session);
  const changed = Buffer.from(body.toString().replace('"200"', '"999"'));
  t.is((await purchases.receive(changed, signature)).outcome, 'refused');
  t.is((await purchases.receive(body, '')).outcome, 'refused');
  t.is((await purchases.receive(body, 't=1,v1=00')).outcome, 'refused');
  t.is((await purchases.receive(Buffer.alloc(0), signature)).outcome, 'refused');
  t.is((await receive({}, { secret: 'whsec_other' })).outcome, 'refused');
  for (const hours of [-1, 1, 24 * 365])
    t.is((await receive({}, { timestamp: Math.floor(Date.now() / 1000) + 3600 * hours })).outcome, 'refused');
  t.is(await balance(), 0 as never);
});

test('a payment that cannot be booked is an error, so that Stripe reports it again', async (t) => {
  const { receive } = await shop(t);
  await t.throwsAsync(receive({ metadata: { account: 'acc_none', quarter_credits: '200' } }), {
    code: 'STORE_UNKNOWN_ACCOUNT',
  });
  await t.throwsAsync(receive({ metadata: { account: 'acc_none', quarter_credits: 'many' } }), {
    message: /sold many/,
  });
});

test('a payment for a deleted account is booked once, and the audit event says what to refund', async (t) => {
  const { stores, account, receive, balance } = await shop(t);
  const { accounts, audit, ledger } = stores;
  await accounts.erase(account);
  t.like(await receive({}), {
    outcome: 'unclaimed',
    accountId: account,
    amount: credits(50),
    session: 'cs_1',
  });
  // Stripe reports everything twice.
  t.is((await receive({})).outcome, 'duplicate');
  const again = { id: 'evt_2', type: 'checkout.session.async_payment_succeeded' };
  t.is((await receive({}, again)).outcome, 'duplicate');
  t.is(await balance(), credits(50));
  const entries = await ledger.statement(account);
  t.is(entries.length, 1);
  t.like(entries[0], { kind: 'purchase', amount: credits(50), reference: 'stripe cs_1' });
  t.regex(entries[0]?.note ?? '', /^evt_1: paid after the account was deleted$/);
  const events = (await audit.list({ limit: 9 })).filter(({ action }) => action === 'credits.purchase');
  t.is(events.length, 1);
  t.like(events[0], { subject: account, actor: null });
  t.regex(events[0]?.detail ?? '', /^50 paid after the account was deleted: refund Stripe's session cs_1/);
  t.deepEqual(await ledger.verify(), []);

  // Refunded at Stripe: the operator removes the credits again.
  await ledger.post(account, { kind: 'adjust', amount: credits(-50), note: 'refunded at Stripe' });
  t.is(await balance(), credits(0));
});

test('deleting an account and booking its purchase are serialised', async (t) => {
  const { stores, account, receive } = await shop(t);
  const { audit, ledger } = stores;
  let received: ReturnType<typeof receive> | undefined;
  await stores.transaction(async ({ accounts }) => {
    received = receive({});
    await accounts.erase(account);
    // By now the purchase reads the account, or waits for this transaction.
    await new Promise(setImmediate);
  });
  t.is((await received)?.outcome, 'unclaimed');
  const events = (await audit.list({ limit: 9 })).filter(({ action }) => action === 'credits.purchase');
  t.deepEqual(
    events.map(({ detail }) => detail?.includes('refund Stripe')),
    [true],
  );
  t.regex((await ledger.statement(account))[0]?.note ?? '', /paid after the account was deleted$/);
});
