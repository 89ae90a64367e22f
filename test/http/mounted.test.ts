import test from 'ava';
import { scene } from '../fixtures/images.ts';
import { form, startService } from '../fixtures/service.ts';
import { signedEvent, stripeLike } from '../support/stripe.ts';

test('operator API and shop do not exist unless configured', async (t) => {
  const service = await startService(t);
  for (const path of ['/admin/v1/accounts', '/billing/packs', '/billing/stripe'])
    t.is((await fetch(service.url + path, { method: 'POST' })).status, 404, path);
});

test('an operator creates an account, a key and credits, and the key works', async (t) => {
  const service = await startService(t, { adminToken: 'operator-token-of-this-test' });
  const admin = async (path: string, fields: Record<string, string>) => {
    const answer = await fetch(`${service.url}/admin/v1${path}`, {
      method: 'POST',
      headers: { Authorization: 'Bearer operator-token-of-this-test', 'Content-Type': 'application/json' },
      body: JSON.stringify(fields),
    });
    t.is(answer.status, 200);
    return ((await answer.json()) as { data: Record<string, string> }).data;
  };
  const { id } = await admin('/accounts', { name: 'Ada' });
  const { key } = await admin(`/accounts/${id}/keys`, { label: 'first' });
  await admin(`/accounts/${id}/credits`, { kind: 'grant', credits: '2' });
  const headers = { 'X-Api-Key': key ?? '' };
  t.is((await service.post(form({ image_file: await scene(), size: 'full' }), headers)).status, 200);
  const account = await fetch(`${service.url}/v1.0/account`, { headers });
  t.regex(await account.text(), /"total":1\}/);
  // A customer's key is not accepted there.
  const wrong = await fetch(`${service.url}/admin/v1/accounts`, {
    headers: { Authorization: `Bearer ${key}` },
  });
  t.is(wrong.status, 403);
  t.false(service.text().includes('operator-token') || service.text().includes(String(key)));
});

test('bought credits are in the balance', async (t) => {
  const { options } = await stripeLike(t);
  const service = await startService(t, { purchases: options, credits: 0 });
  const headers = { 'X-Api-Key': service.key };
  const packs = await fetch(`${service.url}/billing/packs`, { headers });
  t.is(packs.status, 200);
  const checkout = await fetch(`${service.url}/billing/checkout`, {
    method: 'POST',
    headers,
    body: form({ pack: '50' }),
  });
  t.deepEqual(await checkout.json(), { data: { url: 'https://pay.example/cs_1' } });
  const metadata = { account: service.accountId, quarter_credits: '200' };
  const { body, signature } = signedEvent({ metadata });
  const event = await fetch(`${service.url}/billing/stripe`, {
    method: 'POST',
    headers: { 'Stripe-Signature': signature, 'Content-Type': 'application/json' },
    body: new Uint8Array(body),
  });
  t.is(event.status, 200);
  t.is((await service.balance()).credits, 50);
});
