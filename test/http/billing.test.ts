import { connect, type Socket } from 'node:net';
import test from 'ava';
import { Purchases } from '../../src/billing/stripeCheckout.ts';
import { bookPurchase } from '../../src/commands/credits.ts';
import { smallBodyLimits } from '../../src/http/body/limits.ts';
import { auth } from '../../src/http/middleware/auth.ts';
import { receiveBody, receiveRawBody } from '../../src/http/middleware/receiveBody.ts';
import { billingRoutes } from '../../src/http/route/billing/route.ts';
import { MemoryBudget } from '../../src/limits/memoryBudget.ts';
import { createLogger } from '../../src/ops/log.ts';
import { eventually } from '../fixtures/eventually.ts';
import { attemptsOf } from '../support/attempts.ts';
import { serveRoutes } from '../support/routes.ts';
import { accountWith, type Cleanup, testStores } from '../support/stores.ts';
import { signedEvent, stripeLike, webhookSecret } from '../support/stripe.ts';

async function start(t: Cleanup, { failures = 0 } = {}) {
  const stores = await testStores(t);
  const account = await accountWith(stores, 0);
  const { key } = await stores.accounts.createKey(account);
  const { options } = await stripeLike(t);
  const memory = new MemoryBudget();
  memory.bound({ room: 200e6, largestWork: 100e6 });
  const before = {
    attempts: attemptsOf(failures),
    key: auth((sent) => stores.accounts.authenticate(sent), attemptsOf(0)),
    body: [receiveBody(new MemoryBudget(), smallBodyLimits)],
    raw: receiveRawBody(memory),
  };
  const errors: string[] = [];
  const logger = createLogger('error', { write: (line: string) => void errors.push(line) });
  const server = await serveRoutes(
    t,
    billingRoutes(before, new Purchases(options, (purchase) => bookPurchase(stores, purchase)), logger),
  );
  const balance = async () => (await stores.ledger.balance(account)).credits as number;
  return { ...server, stores, account, key, balance, errors, memory };
}

test('an account sees the packs and gets the URL of the payment page', async (t) => {
  const { url, key } = await start(t);
  const headers = { 'x-api-key': key };
  const packs = await fetch(`${url}/billing/packs`, { headers });
  t.deepEqual(await packs.json(), {
    data: [
      { id: '50', credits: 50, price: 900, currency: 'eur' },
      { id: '500', credits: 500, price: 4900, currency: 'eur' },
    ],
  });
  const checkout = (pack: string) =>
    fetch(`${url}/billing/checkout`, { method: 'POST', headers, body: new URLSearchParams({ pack }) });
  t.deepEqual(await (await checkout('50')).json(), { data: { url: 'https://pay.example/cs_1' } });
  t.is((await checkout('7')).status, 400);
  t.is((await fetch(`${url}/billing/packs`)).status, 403);
});

test('a signed event posts the credits, needs no key, and leaves no secret in the log', async (t) => {
  const { url, account, balance, log, key } = await start(t);
  const { body, signature } = signedEvent({ metadata: { account, quarter_credits: '200' } });
  const send = (bytes: Buffer, signed: string) =>
    fetch(`${url}/billing/stripe`, {
      method: 'POST',
      headers: { 'stripe-signature': signed, 'content-type': 'application/json' },
      body: bytes,
    });
  t.is((await send(body, signature)).status, 200);
  t.is((await send(body, signature)).status, 200);
  t.is(await balance(), 200);
  t.is((await send(body, 't=1,v1=00')).status, 400);
  t.is((await send(Buffer.concat([body, Buffer.from(' ')]), signature)).status, 400);
  t.is(await balance(), 200);
  for (const secret of [webhookSecret, 'sk_test_1', key, signature]) t.false(log().includes(secret));
});

test('an excessively large event is refused while it is sent', async (t) => {
  const { url } = await start(t);
  const answer = await fetch(`${url}/billing/stripe`, { method: 'POST', body: Buffer.alloc(5e6) });
  t.is(answer.status, 400);
  t.regex(await answer.text(), /larger than 256 kB/);
});

test('a payment for an unknown account is a 500, so that Stripe repeats it', async (t) => {
  const { url } = await start(t);
  const { body, signature } = signedEvent({ metadata: { account: 'acc_none', quarter_credits: '200' } });
  const headers = { 'stripe-signature': signature };
  const answer = await fetch(`${url}/billing/stripe`, { method: 'POST', headers, body });
  t.is(answer.status, 500);
  t.false((await answer.text()).includes('acc_none'));
});

test('a payment for a deleted account is booked at once, and is an error in the log', async (t) => {
  const { url, account, stores, errors, balance } = await start(t);
  await stores.accounts.erase(account);
  const { body, signature } = signedEvent({ metadata: { account, quarter_credits: '200' } });
  const send = () =>
    fetch(`${url}/billing/stripe`, { method: 'POST', headers: { 'stripe-signature': signature }, body });
  t.is((await send()).status, 200);
  t.is((await send()).status, 200);
  t.is(await balance(), 200);
  t.is(errors.length, 1);
  t.like(JSON.parse(errors[0] ?? ''), { level: 50, account, session: 'cs_1', credits: '50' });
});

test("announced events that are never sent hold little memory, and Stripe's are still accepted", async (t) => {
  const { url, account, balance, memory } = await start(t);
  const sockets: Socket[] = [];
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  const count = 400;
  const start200kB = 'POST /billing/stripe HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n{';
  for (let i = 0; i < count; i++) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => {});
    socket.write(start200kB);
    if (i % 50 === 49) await new Promise((sent) => socket.write('{', sent));
  }
  await eventually(() => memory.stats.held >= count * 10_000);
  t.true(memory.stats.held < count * 32_000);
  const { body, signature } = signedEvent({ metadata: { account, quarter_credits: '200' } });
  const headers = { 'stripe-signature': signature };
  t.is((await fetch(`${url}/billing/stripe`, { method: 'POST', headers, body })).status, 200);
  t.is(await balance(), 200);
  for (const socket of sockets) socket.destroy();
  await eventually(() => memory.stats.held === 0);
});

test('wrong signatures are slowed down', async (t) => {
  const { url } = await start(t, { failures: 3 });
  const send = () => fetch(`${url}/billing/stripe`, { method: 'POST', body: '{}' });
  for (let i = 0; i < 3; i++) t.is((await send()).status, 400);
  const answer = await send();
  t.is(answer.status, 429);
  t.true(Number(answer.headers.get('retry-after')) > 0);
  await answer.text();
});
