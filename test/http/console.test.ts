import { randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { unzipSync } from 'fflate';
import sharp from 'sharp';
import { hashKey } from '../../src/accounts/keyFormat.ts';
import { credits } from '../../src/billing/price.ts';
import type {
  AccountInfo,
  AccountSummary,
  AuditEntry,
  ImageInfo,
  NewKey,
  Overview,
  Page,
  SessionInfo,
  StatementEntry,
} from '../../src/http/route/console/api.ts';
import { Browser } from '../fixtures/browser.ts';
import { scene } from '../fixtures/images.ts';
import { form, type Service, type ServiceOptions, startService } from '../fixtures/service.ts';
import { signedEvent, stripeLike } from '../support/stripe.ts';

/** A service and a browser whose session a one-time link opened. */
async function open(t: ExecutionContext, options: ServiceOptions = {}) {
  const service = await startService(t, options);
  const browser = new Browser();
  const base = `${service.url}/console/api`;
  const post = (path: string, body: object = {}, headers: Record<string, string> = {}) =>
    browser.fetch(`${base}/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-CSRF-Token': csrf, ...headers },
      body: JSON.stringify(body),
    });
  let csrf = '';
  const link = await service.signIns.createLink(service.accountId);
  const opened = (await (await post('link', { token: link })).json()) as SessionInfo;
  t.true(opened.signedIn);
  csrf = opened.signedIn ? opened.csrf : '';
  const get = (path: string) => browser.fetch(`${base}/${path}`);
  return {
    service,
    browser,
    link,
    post,
    get,
    read: async <T>(path: string): Promise<T> => (await get(path)).json() as Promise<T>,
  };
}

async function codeOf(answer: Response): Promise<string | undefined> {
  const { errors } = (await answer.json()) as { errors: { code: string }[] };
  return errors[0]?.code;
}

/** Entries of a list, read page by page. */
async function everyPage<Entry>(
  read: <T>(path: string) => Promise<T>,
  path: string,
): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for (let before: string | null = ''; before !== null; ) {
    const query: string = before === '' ? '' : `&before=${encodeURIComponent(before)}`;
    const page: Page<Entry> = await read<Page<Entry>>(path + query);
    entries.push(...page.entries);
    before = page.next;
  }
  return entries;
}

const call = ({ url }: Service, key: string, fields: Record<string, string | Buffer>) =>
  fetch(`${url}/v1.0/cutout`, { method: 'POST', headers: { 'X-Api-Key': key }, body: form(fields) });

test('a link opens the console once', async (t) => {
  const { link, service } = await open(t);
  const again = await fetch(`${service.url}/console/api/link`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ token: link }),
  });
  t.is(again.status, 401);
  t.is(await codeOf(again), 'not_signed_in');
  t.false(service.text().includes(link));
});

test('an expired link opens nothing, and guessing is slowed down', async (t) => {
  let now = Date.now();
  const service = await startService(t, { now: () => now, attempts: 3 });
  const late = await service.signIns.createLink(service.accountId);
  now += 3_600_001;
  const use = (token: string) =>
    fetch(`${service.url}/console/api/link`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ token }),
    });
  t.is((await use(late)).status, 401);
  t.is((await use('guess')).status, 401);
  t.is((await use('guess')).status, 401);
  const slowed = await use(await service.signIns.createLink(service.accountId));
  t.is(slowed.status, 429);
  t.true(Number(slowed.headers.get('retry-after')) > 0);
  now += 60_000;
  t.is((await use(await service.signIns.createLink(service.accountId))).status, 200);
});

test('prices are public, as configured', async (t) => {
  const service = await startService(t);
  const answer = await fetch(`${service.url}/console/api/options`);
  t.deepEqual(await answer.json(), { creditStep: 0.25, prices: { preview: 0.25, full: 1 } });
  t.is(answer.headers.get('access-control-allow-origin'), null);
});

test('without a session nothing is returned, and other origins may not read answers', async (t) => {
  const service = await startService(t);
  for (const path of [
    'overview',
    'keys',
    'statement',
    'statement.csv',
    'images',
    'export',
    'operator/audit',
  ]) {
    const answer = await fetch(`${service.url}/console/api/${path}`);
    t.is(answer.status, 401, path);
    t.is(await codeOf(answer), 'not_signed_in');
    t.is(answer.headers.get('access-control-allow-origin'), null);
    t.is(answer.headers.get('cache-control'), 'no-store');
  }
});

test("a change needs the session's CSRF token and the service's own origin", async (t) => {
  const { post, service } = await open(t);
  const forged = async (headers: Record<string, string>) => {
    const answer = await post('keys', { name: 'x' }, headers);
    t.is(answer.status, 403);
    t.is(await codeOf(answer), 'forged_request');
  };
  await forged({ 'X-CSRF-Token': '' });
  await forged({ 'X-CSRF-Token': 'another' });
  await forged({ Origin: 'https://evil.test' });
  await forged({ 'Sec-Fetch-Site': 'cross-site' });
  await forged({ 'Sec-Fetch-Site': 'same-site' });
  t.is((await service.stores.accounts.keys(service.accountId)).length, 1);
  t.is((await post('keys', { name: 'x' }, { Origin: service.url })).status, 200);
});

test('a key is created, shown once, usable, and revoked at once', async (t) => {
  const { post, get, read, service } = await open(t);
  const { id, key, name } = (await (await post('keys', { name: 'My <b>key' })).json()) as NewKey;
  t.is(name, 'My <b>key');
  t.is((await call(service, key, { image_file: await scene() })).status, 200);
  const text = await (await get('keys')).text();
  t.false(text.includes(key));
  t.true(JSON.parse(text).some((each: NewKey) => each.id === id && each.lastUsedAt !== null));
  t.deepEqual(await (await post(`keys/${id}/revoke`)).json(), { revoked: true });
  t.is((await call(service, key, { image_file: await scene() })).status, 403);
  t.is((await post(`keys/${id}/revoke`)).status, 404);
  t.false(service.text().includes(key));
  const audit = await read<Page<AuditEntry>>('operator/audit');
  t.deepEqual(
    audit.entries.map(({ action }) => action),
    ['key.revoke', 'key.create', 'sign-in'],
  );
});

test('keys of other accounts cannot be seen or revoked', async (t) => {
  const { post, get, service } = await open(t);
  const other = (await service.stores.accounts.create('Other')).id;
  const { id, key } = await service.stores.accounts.createKey(other);
  t.is((await post(`keys/${id}/revoke`)).status, 404);
  t.false((await (await get('keys')).text()).includes(id));
  t.truthy(await service.stores.accounts.authenticate(hashKey(key)));
});

test('overview and statement show the ledger', async (t) => {
  const { read, get, service } = await open(t, { credits: 10, freePreviews: 1, rate: 500 });
  const preview = { image_file: await scene({ width: 300, height: 200 }), size: 'preview' };
  const full = { image_file: await scene({ width: 900, height: 700 }), size: 'full' };
  const scores: number[] = [];
  for (const fields of [preview, preview, full]) {
    const answer = await call(service, service.key, fields);
    t.is(answer.status, 200);
    scores.push(Number(answer.headers.get('x-uncertainty-score')));
  }

  const overview = await read<Overview>('overview');
  t.is(overview.credits, 8.75);
  t.deepEqual(overview.free, { leftToday: 0, leftThisMonth: 0, perDay: 0, perMonth: 1 });
  t.is(overview.days.length, 30);
  const today = new Date().toISOString().slice(0, 10);
  t.deepEqual(overview.days.at(-1), {
    day: today,
    free: 1,
    preview: 1,
    full: 1,
    toReview: scores.filter((score) => score >= 0.5).length,
    credits: 1.25,
  });
  t.is(overview.rate.limit, 500);
  t.is(overview.rate.remaining, 497);

  const all = await read<Page<StatementEntry>>('statement');
  t.is(all.entries[0]?.balance, 8.75);
  t.is(all.entries.at(-1)?.kind, 'grant');
  t.is(all.next, null);
  t.deepEqual(
    (await everyPage<StatementEntry>(read, 'statement?limit=2')).map(({ id }) => id),
    all.entries.map(({ id }) => id),
  );
  const settled = await read<Page<StatementEntry>>('statement?kind=settle');
  t.deepEqual([...new Set(settled.entries.map(({ kind }) => kind))], ['settle']);
  t.deepEqual(
    settled.entries.map(({ uncertainty }) => uncertainty),
    scores.toReversed(),
  );
  t.is((await get('statement?kind=nothing')).status, 400);

  const csv = await get('statement.csv?kind=grant');
  t.regex(csv.headers.get('content-disposition') ?? '', /attachment; filename="statement.csv"/);
  t.is((await csv.text()).split('\r\n').length, 3);
});

test('images handed in are listed and deleted, only those of the account', async (t) => {
  const { post, read, service } = await open(t);
  const hand = (key: string) =>
    fetch(`${service.url}/v1.0/improve`, {
      method: 'POST',
      headers: { 'X-Api-Key': key },
      body: image(),
    });
  const bytes = await scene();
  const image = () => form({ image_file: bytes, image_filename: 'a<i>.jpg' });
  const { id } = (await (await hand(service.key)).json()) as { id: string };
  const other = (await service.stores.accounts.create('Other')).id;
  const foreign = (await (await hand((await service.stores.accounts.createKey(other)).key)).json()) as {
    id: string;
  };
  const images = await read<Page<ImageInfo>>('images');
  t.deepEqual(
    images.entries.map((image) => [image.id, image.name]),
    [[id, 'a<i>.jpg']],
  );
  t.is((await post(`images/${foreign.id}/delete`)).status, 404);
  t.is((await post(`images/${id}/delete`)).status, 200);
  t.deepEqual(await read('images'), { entries: [], next: null });
  t.is((await service.improve.list()).length, 1);
});

test('the export contains all data of an account', async (t) => {
  const { get, service } = await open(t);
  const image = await scene();
  await fetch(`${service.url}/v1.0/improve`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body: form({ image_file: image }),
  });
  const answer = await get('export');
  t.is(answer.headers.get('content-type'), 'application/zip');
  const files = unzipSync(new Uint8Array(await answer.arrayBuffer()));
  const names = Object.keys(files).sort();
  t.is(names.length, 3);
  t.deepEqual(Buffer.from(files[names[1] ?? ''] ?? []), image);
  const facts = JSON.parse(Buffer.from(files['account.json'] ?? []).toString());
  t.is(facts.account.name, 'Test');
  t.is(facts.keys.length, 1);
  t.false(JSON.stringify(facts).includes(service.key));
  t.is(facts.statement.length, 1);
  t.is(facts.images.length, 1);
});

test('an export has a piece of an image in memory, however large that is', async (t) => {
  const { get, service } = await open(t);
  const image = await sharp(randomBytes(700 * 500 * 3), { raw: { width: 700, height: 500, channels: 3 } })
    .png()
    .toBuffer();
  await fetch(`${service.url}/v1.0/improve`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body: form({ image_file: image }),
  });
  const pieces: number[] = [];
  const read = service.improve.bytes.bind(service.improve);
  service.improve.bytes = async (...call) => {
    const piece = await read(...call);
    pieces.push(piece?.length ?? 0);
    return piece;
  };
  const files = unzipSync(new Uint8Array(await (await get('export')).arrayBuffer()));
  const [name = ''] = Object.keys(files).filter((path) => path.startsWith('images/'));
  t.deepEqual(Buffer.from(files[name] ?? []), image);
  t.true(pieces.length > 3, `${pieces}`);
  t.true(Math.max(...pieces) <= 2 ** 18);
});

test('deleting an account revokes keys, erases personal data and keeps the ledger', async (t) => {
  const { post, service, read } = await open(t, { credits: 3 });
  const elsewhere = new Browser();
  const link = await elsewhere.fetch(`${service.url}/console/api/link`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ token: await service.signIns.createLink(service.accountId) }),
  });
  t.is(link.status, 200);
  await fetch(`${service.url}/v1.0/improve`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body: form({ image_file: await scene() }),
  });
  t.is((await post('delete', { name: 'Somebody' })).status, 400);
  t.is((await post('delete', { name: 'Test' })).status, 200);
  t.is((await call(service, service.key, { image_file: await scene() })).status, 403);
  t.false((await read<SessionInfo>('session')).signedIn);
  t.is(
    (await elsewhere.fetch(`${service.url}/console/api/keys`)).status,
    401,
    'a session of another browser',
  );
  t.is((await service.improve.list()).length, 0);
  const account = await service.stores.accounts.get(service.accountId);
  t.is(account.name, 'deleted account');
  t.is(account.email, null);
  t.not(account.deletedAt, null);
  t.is((await service.stores.ledger.statement(service.accountId)).length, 1);
  t.deepEqual(await service.stores.ledger.verify(), []);
});

test('operators see accounts, grant once even if it is sent repeatedly, and revoke', async (t) => {
  const { post, read, service } = await open(t);
  const other = (await service.stores.accounts.create('Other')).id;
  const { id, key } = await service.stores.accounts.createKey(other);
  const found = await read<Page<AccountSummary>>('operator/accounts?search=OTHER');
  t.deepEqual(
    found.entries.map((account) => account.id),
    [other],
  );
  const { keys, ...summary } = await read<AccountInfo>(`operator/accounts/${other}`);
  t.deepEqual(summary, found.entries[0]);
  t.deepEqual(
    keys.map((each) => each.id),
    [id],
  );
  const grant = { credits: 2.5, note: 'sorry', reference: 'page-1' };
  for (let i = 0; i < 2; i++) {
    const answer = await post(`operator/accounts/${other}/grant`, grant);
    t.is(((await answer.json()) as AccountInfo).credits, 2.5);
  }
  for (const credits of [0, -1, 0.3, 'x'])
    t.is((await post(`operator/accounts/${other}/grant`, { ...grant, credits, reference: 'r' })).status, 400);
  t.is((await post(`operator/accounts/${other}/grant`, { ...grant, credits: 1 })).status, 400);
  t.is((await post('operator/accounts/nobody/grant', grant)).status, 404);
  t.is((await post(`operator/keys/${id}/revoke`)).status, 200);
  t.is(await service.stores.accounts.authenticate(hashKey(key)), undefined);
  const { entries } = await read<Page<AuditEntry>>('operator/audit?limit=2');
  t.like(entries[0], { action: 'key.revoke', subject: id, actor: service.accountId, address: '127.0.0.1' });
  t.like(entries[1], { action: 'credits.grant', subject: other, detail: '2.5: sorry' });
});

test('lists are read page by page: every entry once, newest first', async (t) => {
  const { read, service } = await open(t);
  const { accounts, audit } = service.stores;
  const created: string[] = [service.accountId];
  for (let i = 0; i < 6; i++) created.push((await accounts.create(`Account ${i}`)).id);
  for (let i = 0; i < 5; i++) await audit.write({ action: 'key.create', subject: String(i) });
  const image = await scene({ width: 80, height: 60 });
  for (let i = 0; i < 5; i++)
    await fetch(`${service.url}/v1.0/improve`, {
      method: 'POST',
      headers: { 'X-Api-Key': service.key },
      body: form({ image_file: image, image_filename: `${i}.png` }),
    });
  for (const list of ['operator/accounts', 'operator/audit', 'images']) {
    const whole = (await read<Page<{ id: unknown }>>(`${list}?limit=500`)).entries;
    t.true(whole.length >= 5, list);
    for (const limit of [1, 2, whole.length])
      t.deepEqual(await everyPage(read, `${list}?limit=${limit}`), whole, `${list} by ${limit}`);
    t.true((await read<Page<unknown>>(`${list}?limit=2`)).entries.length === 2);
  }
  const listed = (await read<Page<AccountSummary>>('operator/accounts')).entries;
  t.deepEqual(listed.map(({ id }) => id).toSorted(), created.toSorted());
  t.is((await everyPage<AccountSummary>(read, 'operator/accounts?limit=2&search=account')).length, 6);
});

for (const list of ['statement', 'images', 'operator/accounts', 'operator/audit']) {
  test(`${list} refuses invalid pages`, async (t) => {
    const { get } = await open(t);
    for (const query of [
      'limit=0',
      'limit=501',
      'limit=1.5',
      'limit=x',
      'limit=1&limit=2',
      'before=',
      'before=x',
      'before=-1',
      'before=1-2-3&before=4',
      `before=${'9'.repeat(16)}`,
      `before=1-${'x'.repeat(101)}`,
      "before=' OR 1=1 --",
    ]) {
      const answer = await get(`${list}?${query}`);
      t.is(answer.status, 400, query);
      t.is(await codeOf(answer), 'malformed_request');
    }
    t.is((await get(`${list}?limit=500`)).status, 200);
  });
}

test('the statement as a file has every entry, whatever their number', async (t) => {
  const { get, service } = await open(t, { credits: 1 });
  const { ledger } = service.stores;
  for (let i = 0; i < 1001; i++)
    await ledger.post(service.accountId, { kind: 'grant', amount: credits(1), reference: `${i}` });
  const rows = (await (await get('statement.csv')).text()).trimEnd().split('\r\n');
  const ids = (await ledger.statementNewestFirst(service.accountId)).map(({ id }) => String(id));
  t.is(ids.length, 1002);
  t.regex(rows[0] ?? '', /^id,time,kind,/);
  t.deepEqual(
    rows.slice(1).map((row) => row.split(',')[0]),
    ids,
  );
});

test('unknown keys of one address are slowed down; a valid key always passes', async (t) => {
  let now = Date.now();
  const service = await startService(t, { attempts: 5, now: () => now });
  const { accounts } = service.stores;
  const account = (key: string) => fetch(`${service.url}/v1.0/account`, { headers: { 'X-Api-Key': key } });
  const fresh = (await accounts.createKey(service.accountId)).key;
  for (let i = 0; i < 5; i++) t.is((await account(`guess-${i}`)).status, 403);
  const slowed = await account('guess-6');
  t.is(slowed.status, 429);
  t.true(Number(slowed.headers.get('retry-after')) > 0);
  t.is((await account(fresh)).status, 200, 'never seen before');
  t.is((await account((await accounts.createKey(service.accountId)).key)).status, 200, 'made meanwhile');
  t.is((await account('guess-7')).status, 429);
  now += 60_000;
  t.is((await account('guess-8')).status, 403);
});

test('concurrent guesses: only the allowed number is answered, and a link that had to wait stays valid', async (t) => {
  let now = Date.now();
  const service = await startService(t, { attempts: 3, now: () => now });
  const statuses = async (asked: Promise<Response>[]) => {
    const all = (await Promise.all(asked)).map(({ status }) => status);
    return Object.fromEntries(
      [...new Set(all)].map((each) => [each, all.filter((one) => one === each).length]),
    );
  };
  const use = (token: string) =>
    fetch(`${service.url}/console/api/link`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ token }),
    });
  const many = Array.from({ length: 60 }, (_, i) => `guess${i}`);
  t.deepEqual(await statuses(many.map(use)), { 401: 3, 429: 57 });
  const link = await service.signIns.createLink(service.accountId);
  t.is((await use(link)).status, 429);
  now += 60_000;
  t.is((await use(link)).status, 200);
  const account = (key: string) => fetch(`${service.url}/v1.0/account`, { headers: { 'X-Api-Key': key } });
  t.deepEqual(await statuses(many.map(account)), { 403: 3, 429: 57 });
});

test('a clock that is set back prolongs neither links nor sessions', async (t) => {
  let now = Date.now();
  const service = await startService(t, { now: () => now });
  const browser = new Browser();
  const use = async (token: string) => {
    const answer = await browser.fetch(`${service.url}/console/api/link`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ token }),
    });
    return answer.status;
  };
  const signedIn = async () => {
    const answer = await browser.fetch(`${service.url}/console/api/session`);
    return ((await answer.json()) as SessionInfo).signedIn;
  };
  const day = 86_400_000;
  const links = [];
  for (let i = 0; i < 3; i++) links.push(await service.signIns.createLink(service.accountId));
  const [first = '', second = '', third = ''] = links;
  // By as much as clocks of nodes may differ.
  now -= 30_000;
  t.is(await use(first), 200);
  now -= 30_000;
  t.true(await signedIn());
  now -= 7 * day;
  t.false(await signedIn());
  t.is(await use(second), 401);
  now += 7 * day + 60_000;
  t.false(await signedIn(), 'it ended for good');
  t.is(await use(third), 401, 'so did all links of that time');
});

test('packs are bought through the payment page; without any nothing is for sale', async (t) => {
  const { options } = await stripeLike(t);
  const { post, read, get, service } = await open(t, { purchases: options });
  t.deepEqual(await read('packs'), [
    { id: '50', credits: 50, price: 900, currency: 'eur' },
    { id: '500', credits: 500, price: 4900, currency: 'eur' },
  ]);
  t.deepEqual(await (await post('checkout', { pack: '50' })).json(), { url: 'https://pay.example/cs_1' });
  t.is((await post('checkout', { pack: '7' })).status, 404);
  const session = await read<SessionInfo>('session');
  t.true(session.signedIn && session.selling);
  const event = signedEvent({ metadata: { account: service.accountId, quarter_credits: '200' } });
  const headers = { 'Stripe-Signature': event.signature };
  const body = new Uint8Array(event.body);
  await fetch(`${service.url}/billing/stripe`, { method: 'POST', headers, body });
  t.is((await read<Overview>('overview')).credits, 150);
  const plain = await open(t);
  t.is((await plain.get('packs')).status, 404);
  t.is((await get('packs')).status, 200);
});
