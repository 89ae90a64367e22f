import test, { type ExecutionContext } from 'ava';
import type { SessionInfo } from '../../src/http/route/console/api.ts';
import { Browser } from '../fixtures/browser.ts';
import { scene } from '../fixtures/images.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';
import { form, startService } from '../fixtures/service.ts';
import { breakAudit, contents } from '../support/audit.ts';
import { type NewPlace, sqlitePlace } from '../support/stores.ts';
import { signedEvent, stripeLike } from '../support/stripe.ts';

/** A real server with an operator's token, an operator in the console, and one of everything that can be changed. */
async function open(t: ExecutionContext, place: NewPlace) {
  const { databaseUrl } = await place(t);
  const { options: purchases } = await stripeLike(t);
  const service = await startService(t, {
    ...(databaseUrl !== undefined && { databaseUrl }),
    purchases,
    adminToken: 'token',
    freePreviews: 0,
  });
  const { url, accountId, stores, signIns } = service;
  const json = { 'Content-Type': 'application/json' };

  const enter = async (browser = new Browser()) => {
    const link = { token: await signIns.createLink(accountId) };
    const request = { method: 'POST', headers: json, body: JSON.stringify(link) };
    return { browser, answer: await browser.fetch(`${url}/console/api/link`, request) };
  };
  const { browser, answer } = await enter();
  const session = (await answer.json()) as SessionInfo;
  const csrf = session.signedIn ? session.csrf : '';

  const admin = (path: string, fields: object) =>
    fetch(`${url}/admin/v1${path}`, {
      method: 'POST',
      headers: { ...json, Authorization: 'Bearer token' },
      body: JSON.stringify(fields),
    });
  const own = (path: string, fields: object = {}) =>
    browser.fetch(`${url}/console/api/${path}`, {
      method: 'POST',
      headers: { ...json, 'X-CSRF-Token': csrf },
      body: JSON.stringify(fields),
    });
  const webhook = () => {
    const { body, signature } = signedEvent({ metadata: { account: accountId, quarter_credits: '200' } });
    const headers = { 'Stripe-Signature': signature };
    return fetch(`${url}/billing/stripe`, { method: 'POST', headers, body: new Uint8Array(body) });
  };

  const photo = await scene({ width: 80, height: 60 });
  t.is((await service.post(form({ image_file: photo, size: 'full' }))).status, 200);
  const charge = (await stores.ledger.statement(accountId)).find(({ kind }) => kind === 'reserve');
  const handedIn = await fetch(`${url}/v1.0/improve`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body: form({ image_file: photo }),
  });
  const image = ((await handedIn.json()) as { id: string }).id;
  const keys: string[] = [];
  for (const label of ['a', 'b', 'c']) keys.push((await stores.accounts.createKey(accountId, label)).id);
  // Uses of keys are written now, so that nothing changes by itself later.
  await stores.accounts.flush();

  const link = await signIns.createLink(accountId);
  const openLink = () =>
    fetch(`${url}/console/api/link`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ token: link }),
    });
  const grant = (reference: string) => ({ credits: '2.5', note: 'sorry', reference });
  const owner = accountId;
  /** A request, the action of its audit event, and its actor. */
  const requests: [() => Promise<Response>, string, string | null][] = [
    [() => admin('/accounts', { name: 'Ada' }), 'account.create', null],
    [() => admin(`/accounts/${accountId}/keys`, { label: 'shop' }), 'key.create', null],
    [() => admin(`/keys/${keys[0]}/revoke`, {}), 'key.revoke', null],
    [() => admin(`/accounts/${accountId}/credits`, { kind: 'grant', ...grant('1') }), 'credits.grant', null],
    [
      () => admin(`/accounts/${accountId}/credits`, { kind: 'adjust', ...grant('1') }),
      'credits.adjust',
      null,
    ],
    [() => admin(`/accounts/${accountId}/refunds`, { reservation: `${charge?.id}` }), 'credits.refund', null],
    [webhook, 'credits.purchase', null],
    [openLink, 'sign-in', owner],
    [() => own('keys', { name: 'silent' }), 'key.create', owner],
    [() => own(`keys/${keys[1]}/revoke`), 'key.revoke', owner],
    [() => own(`operator/keys/${keys[2]}/revoke`), 'key.revoke', owner],
    [() => own(`operator/accounts/${accountId}/grant`, grant('2')), 'credits.grant', owner],
    [() => own(`images/${image}/delete`), 'image.delete', owner],
    [() => own('delete', { name: 'Test' }), 'account.delete', owner],
  ];
  return { service, requests };
}

function testAudit(database: string, place: NewPlace): void {
  test(`${database}: every change over HTTP is in the audit log`, async (t) => {
    const { service, requests } = await open(t, place);
    const { stores } = service;
    const mend = await breakAudit(stores);
    const before = await contents(stores.database);
    for (const [ask, action, actor] of requests) {
      const answer = await ask();
      const text = await answer.text();
      const what = `${action} by ${actor}`;
      t.is(answer.status, 503, what);
      t.regex(text, /service_unavailable/, what);
      // Neither the database's address nor its message.
      t.notRegex(text, /127\.0\.0\.1|books|lock timeout|no event/, what);
      t.deepEqual(await contents(stores.database), before, what);
    }
    await mend();
    const known = (await service.audit.list({ limit: 99 })).length;
    for (const [ask, action] of requests) t.is((await ask()).status, 200, action);
    const events = (await service.audit.list({ limit: 99 })).toReversed().slice(known);
    t.deepEqual(
      events.map(({ action, actor }) => [action, actor]),
      requests.map(([, action, actor]) => [action, actor]),
    );
    t.deepEqual(await stores.ledger.verify(), []);
  });
}

testAudit('SQLite', sqlitePlace);
if (postgresMissing) test.skip(postgresMissing, () => {});
else {
  testAudit('PostgreSQL', postgresPlace);
  test.after.always(removePostgres);
}
