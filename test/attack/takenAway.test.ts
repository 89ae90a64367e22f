import test, { type ExecutionContext } from 'ava';
import { credits } from '../../src/billing/price.ts';
import type { SessionInfo } from '../../src/http/route/console/api.ts';
import { scene } from '../fixtures/images.ts';
import { type RawAnswer, rawRequest } from '../fixtures/rawHttp.ts';
import { type Service, startService } from '../fixtures/service.ts';
import { stripeLike } from '../support/stripe.ts';

/*
 * Permission for a request is revoked while its body arrives: the request has no effect. A client that waits for 100
 * Continue knows that the guards admitted it, and sends the body whenever it likes.
 */

interface Held {
  /** Sends the body. */
  readonly finish: () => Promise<{ readonly status: number; readonly code: unknown }>;
}

/** An admitted request whose body is still to come. */
async function begin(
  { address }: Service,
  path: string,
  { headers, body }: { readonly headers: Readonly<Record<string, string>>; readonly body: Buffer },
): Promise<Held> {
  let go = () => {};
  const sent = new Promise<void>((resolve) => {
    go = resolve;
  });
  let letIn = () => {};
  const open = new Promise<void>((resolve) => {
    letIn = resolve;
  });
  const answer: Promise<RawAnswer> = rawRequest(address.port, async (socket) => {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.once('data', letIn);
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${address.port}\r\n${lines.join('')}Content-Length: ${body.length}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`,
    );
    await sent;
    socket.write(body);
  });
  await Promise.race([open, answer]);
  return {
    finish: async () => {
      go();
      const raw = await answer;
      if (raw.status !== 100) throw new Error(`let in with ${raw.status}: ${raw.body}`);
      const [head = '', text = ''] = raw.body.split('\r\n\r\n');
      const status = Number(head.split(' ')[1]);
      return { status, code: status === 200 ? undefined : JSON.parse(text).errors[0].code };
    },
  };
}

const json = (fields: object) => Buffer.from(JSON.stringify(fields));

interface Visitor {
  readonly headers: Readonly<Record<string, string>>;
  readonly post: (path: string, fields?: object) => Promise<number>;
}

/** A session of its own, as a browser has. */
async function signIn({ url, signIns }: Service, accountId: string): Promise<Visitor> {
  const post = (path: string, fields: object, more: Readonly<Record<string, string>> = {}) =>
    fetch(`${url}/console/api/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...more },
      body: JSON.stringify(fields),
    });
  const opened = await post('link', { token: await signIns.createLink(accountId) });
  const Cookie = opened.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ');
  const info = (await opened.json()) as SessionInfo;
  if (!info.signedIn) throw new Error('not signed in');
  const headers = { Cookie, 'X-CSRF-Token': info.csrf };
  return {
    headers: { ...headers, 'Content-Type': 'application/json' },
    post: async (path, fields = {}) => (await post(path, fields, headers)).status,
  };
}

async function open(t: ExecutionContext) {
  const stripe = await stripeLike(t);
  const service = await startService(t, {
    credits: 5,
    freePreviews: 3,
    purchases: stripe.options,
  });
  const { id } = await service.stores.accounts.create('Me');
  const { key } = await service.stores.accounts.createKey(id);
  return { service, stripe, id, key };
}

test('an account deleted while a key is being created gets no new key', async (t) => {
  const { service, id } = await open(t);
  const [here, there] = [await signIn(service, id), await signIn(service, id)];
  const held = await begin(service, '/console/api/keys', {
    headers: here.headers,
    body: json({ name: 'zombie' }),
  });
  t.is(await there.post('delete', { name: 'Me' }), 200);
  t.deepEqual(await held.finish(), { status: 401, code: 'not_signed_in' });
  t.true((await service.stores.accounts.keys(id)).every(({ revokedAt }) => revokedAt !== null));
});

test('deleting an account and returning gives no more free previews than one account has', async (t) => {
  const { service } = await open(t);
  const person = { issuer: 'https://a.test', subject: 'mallory', name: 'Mallory', email: null };
  const { account } = await service.signIns.accountOf(person);
  const reserve = async (id: string) =>
    (await service.stores.ledger.reserve(id, { requestId: 'r', size: 'preview' })).payment;
  // Calls in progress when their account was deleted count for later accounts, and calls of those count for it.
  t.is(await reserve(account.id), 'free');
  await service.stores.accounts.erase(account.id);
  const next = (await service.signIns.accountOf(person)).account;
  t.is(await reserve(next.id), 'free');
  t.is(await reserve(account.id), 'free');
  await t.throwsAsync(reserve(account.id), { code: 'insufficient_credits' });
  await t.throwsAsync(reserve(next.id), { code: 'insufficient_credits' });
});

test('an ended session changes nothing through a body that was in progress', async (t) => {
  const { service, stripe, id } = await open(t);
  const before = (await service.stores.ledger.balance(id)).credits;
  const operator = await signIn(service, service.accountId);
  const held = await Promise.all(
    [
      [`operator/accounts/${id}/grant`, { credits: 777, note: 'n', reference: 'r' }],
      ['keys', { name: 'late' }],
      ['delete', { name: 'Test' }],
      ['checkout', { pack: '50' }],
    ].map(([path, fields]) =>
      begin(service, `/console/api/${path as string}`, {
        headers: operator.headers,
        body: json(fields as object),
      }),
    ),
  );
  t.is(await operator.post('sign-out'), 200);
  for (const { finish } of held) t.deepEqual(await finish(), { status: 401, code: 'not_signed_in' });
  t.is((await service.stores.ledger.balance(id)).credits, before);
  t.is((await service.stores.accounts.keys(service.accountId)).length, 1);
  t.is((await service.stores.accounts.get(service.accountId)).deletedAt, null);
  t.deepEqual(stripe.asked, []);
});

for (const path of ['/v1.0/cutout', '/v1.0/removebg', '/v1.0/improve', '/billing/checkout'])
  test(`a key revoked while a body arrives has no effect: ${path}`, async (t) => {
    const { service, stripe, id, key } = await open(t);
    await service.stores.ledger.post(id, { kind: 'grant', amount: credits(5) });
    const fields = path.startsWith('/billing')
      ? { pack: '50' }
      : { image_file_b64: (await scene()).toString('base64'), size: 'full' };
    const held = await begin(service, path, {
      headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
      body: json(fields),
    });
    const [row] = await service.stores.accounts.keys(id);
    t.true(await service.stores.accounts.revokeKey(row?.id ?? ''));
    t.deepEqual(await held.finish(), { status: 403, code: 'auth_failed' });
    t.is(service.calls(), 0);
    t.is((await service.stores.ledger.statement(id)).length, 1);
    t.deepEqual(await service.improve.list(), []);
    t.deepEqual(stripe.asked, []);
  });
