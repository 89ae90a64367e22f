import test from 'ava';
import { hashKey } from '../../src/accounts/keyFormat.ts';
import { smallBodyLimits } from '../../src/http/body/limits.ts';
import { tokenGuard } from '../../src/http/middleware/auth.ts';
import { receiveBody } from '../../src/http/middleware/receiveBody.ts';
import { adminRoutes } from '../../src/http/route/admin/route.ts';
import { MemoryBudget } from '../../src/limits/memoryBudget.ts';
import { attemptsOf } from '../support/attempts.ts';
import { serveRoutes } from '../support/routes.ts';
import { accountWith, type Cleanup, testStores } from '../support/stores.ts';

const token = 'operator-token-of-this-test';

async function start(t: Cleanup) {
  const stores = await testStores(t);
  const server = await serveRoutes(
    t,
    adminRoutes(
      [tokenGuard(token, 'operator', attemptsOf(0))],
      receiveBody(new MemoryBudget(), smallBodyLimits),
      stores,
    ),
  );
  const call = async (method: string, path: string, fields?: object, authorization = `Bearer ${token}`) => {
    const answer = await fetch(`${server.url}/admin/v1${path}`, {
      method,
      headers: { authorization, ...(fields && { 'content-type': 'application/json' }) },
      ...(fields && { body: JSON.stringify(fields) }),
    });
    return {
      status: answer.status,
      ...((await answer.json()) as { data?: unknown; errors?: { detail: string }[] }),
    };
  };
  const get = (path: string) => call('GET', path);
  const post = (path: string, fields: object) => call('POST', path, fields);
  return { stores, server, call, get, post };
}

test('only the operator token is accepted', async (t) => {
  const { call } = await start(t);
  t.is((await call('GET', '/accounts')).status, 200);
  for (const wrong of [
    '',
    'Bearer',
    `Bearer ${token}x`,
    `Bearer ${token.slice(1)}`,
    `Basic ${token}`,
    token,
  ]) {
    const answer = await call('GET', '/accounts', undefined, wrong);
    t.is(answer.status, 403, wrong);
    t.false(JSON.stringify(answer).includes(token.slice(1)));
  }
});

test('an account from its creation to its last key', async (t) => {
  const { stores, get, post } = await start(t);
  const made = await post('/accounts', { name: 'Ada' });
  const { id } = made.data as { id: string };
  t.like(made.data, { name: 'Ada', credits: '0', free_calls: 50 });
  const key = (await post(`/accounts/${id}/keys`, { label: 'shop' })).data as { id: string; key: string };
  t.is((await stores.accounts.authenticate(hashKey(key.key)))?.id, id);
  const listed = await get(`/accounts/${id}/keys`);
  t.like((listed.data as object[])[0], { id: key.id, label: 'shop', revoked: null });
  t.false(JSON.stringify(listed).includes(key.key));
  t.deepEqual((await post(`/keys/${key.id}/revoke`, {})).data, { id: key.id, revoked: true });
  t.is((await post(`/keys/${key.id}/revoke`, {})).status, 404);
  t.is(await stores.accounts.authenticate(hashKey(key.key)), undefined);
  t.deepEqual((await get('/accounts')).data, [(await get(`/accounts/${id}`)).data]);
});

test('credits are granted once per reference, adjusted not below 0, and shown in the statement', async (t) => {
  const { stores, get, post } = await start(t);
  const id = await accountWith(stores, 0);
  const credits = (fields: object) => post(`/accounts/${id}/credits`, fields);
  const grant = { kind: 'grant', credits: '10', reference: 'invoice 7' };
  t.deepEqual((await credits(grant)).data, { outcome: 'posted', balance: '10' });
  t.deepEqual((await credits(grant)).data, { outcome: 'duplicate', balance: '10' });
  t.is((await credits({ ...grant, credits: '11' })).status, 400);
  t.deepEqual((await credits({ kind: 'adjust', credits: -2.5 })).data, { outcome: 'posted', balance: '7.5' });
  t.is((await credits({ kind: 'adjust', credits: '-8' })).status, 402);
  const entries = (await get(`/accounts/${id}/statement`)).data as { id: number; amount: string }[];
  t.deepEqual(
    entries.map(({ amount }) => amount),
    ['10', '-2.5'],
  );
  const rest = await get(`/accounts/${id}/statement?after=${entries[0]?.id}&limit=1`);
  t.deepEqual(rest.data, entries.slice(1));
});

test('a charged call is counted, and refunded once', async (t) => {
  const { stores, get, post } = await start(t);
  const id = await accountWith(stores, 3);
  const charged = await stores.ledger.reserve(id, { size: 'full', requestId: 'r' });
  await charged.settle(0.75);
  const row = { day: '2026-11-21', account: id, payment: 'full', calls: 1, to_review: 1, credits: '1' };
  t.deepEqual((await get('/usage')).data, [row]);
  t.deepEqual((await get(`/accounts/${id}/usage?from=2026-11-21&to=2026-11-22`)).data, [row]);
  t.deepEqual((await get('/usage?from=2026-11-22')).data, []);
  const reservation = charged.id;
  t.like((await post(`/accounts/${id}/refunds`, { reservation })).data, { outcome: 'posted', credits: '3' });
  t.like((await post(`/accounts/${id}/refunds`, { reservation })).data, {
    outcome: 'duplicate',
    credits: '3',
  });
  t.is((await post(`/accounts/${id}/refunds`, { reservation: 99 })).status, 404);
});

for (const [path, fields] of [
  ['/accounts', {}],
  ['/accounts', { name: 'x'.repeat(201) }],
  ['/accounts/ID/credits', { kind: 'grant', credits: '0.1' }],
  ['/accounts/ID/credits', { kind: 'grant', credits: '-1' }],
  ['/accounts/ID/credits', { kind: 'adjust', credits: '0' }],
  ['/accounts/ID/credits', { kind: 'purchase', credits: '1' }],
  ['/accounts/ID/refunds', { reservation: '1.5' }],
] as const) {
  test(`POST ${path} with ${JSON.stringify(fields).slice(0, 60)} is 400 and changes nothing`, async (t) => {
    const { stores, post } = await start(t);
    const id = await accountWith(stores, 1);
    const answer = await post(path.replace('ID', id), fields);
    t.is(answer.status, 400);
    t.truthy(answer.errors?.[0]?.detail);
    t.is((await stores.ledger.listBalances()).length, 1);
    t.is((await stores.ledger.statement(id)).length, 1);
  });
}

test('an unknown account is 404, an invalid query 400', async (t) => {
  const { get, post, stores } = await start(t);
  const id = await accountWith(stores, 0);
  t.is((await get('/accounts/acc_none')).status, 404);
  t.is((await get('/accounts/acc_none/statement')).status, 404);
  t.is((await post('/accounts/acc_none/keys', {})).status, 404);
  t.is((await post('/accounts/acc_none/credits', { kind: 'grant', credits: '1' })).status, 404);
  for (const query of ['limit=0', 'limit=10001', 'after=x', 'from=yesterday', 'after=1&after=2']) {
    t.is((await get(`/accounts/${id}/statement?${query}`)).status, 400, query);
  }
});

test("changes with the token are in the audit log, with the client's address", async (t) => {
  const { stores, post } = await start(t);
  const { id } = (await post('/accounts', { name: 'Ada' })).data as { id: string };
  await post(`/accounts/${id}/credits`, { kind: 'grant', credits: '2', note: 'welcome' });
  const [grant, created] = await stores.audit.list({ limit: 9 });
  t.like(grant, {
    actor: null,
    action: 'credits.grant',
    subject: id,
    detail: '2: welcome',
    address: '127.0.0.1',
  });
  t.like(created, { actor: null, action: 'account.create', subject: id });
});
