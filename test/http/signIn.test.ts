import test, { type ExecutionContext } from 'ava';
import { freePort } from '../../bench/lib/freePort.ts';
import { Provider, type ProviderOptions } from '../../src/accounts/oidc.ts';
import { loadConfig } from '../../src/config/readConfig.ts';
import type { AccountSummary, Page, SessionInfo } from '../../src/http/route/console/api.ts';
import { providersOf } from '../../src/server/openConsole.ts';
import { Browser } from '../fixtures/browser.ts';
import { scene } from '../fixtures/images.ts';
import { type OidcOptions, startOidc, throughProvider } from '../fixtures/oidc.ts';
import { form, type Service, type ServiceOptions, startService } from '../fixtures/service.ts';

interface Setting {
  readonly oidc?: Partial<OidcOptions>;
  readonly provider?: Partial<ProviderOptions>;
  readonly service?: ServiceOptions;
}

async function start(t: ExecutionContext, { oidc, provider, service: more }: Setting = {}) {
  const port = await freePort();
  const publicUrl = `http://127.0.0.1:${port}`;
  const redirectUrl = `${publicUrl}/sign-in/1/callback`;
  const server = await startOidc(t, { redirectUrl, returnUrl: `${publicUrl}/console`, ...oidc });
  const { issuer, clientId, clientSecret } = server;
  const options: ProviderOptions = {
    id: '1',
    name: 'Company',
    issuer,
    clientId,
    clientSecret,
    redirectUrl,
    operatorClaim: { name: 'groups', value: 'cutout-admins' },
    operators: ['boss@people.test'],
    ...provider,
  };
  const service = await startService(t, { port, publicUrl, providers: [new Provider(options)], ...more });
  const browser = new Browser();
  return {
    service,
    browser,
    server,
    issuer,
    /** Through the provider's forms, up to the redirect back. */
    comeBack: (login: string, who = browser) =>
      throughProvider(who, `${service.url}/sign-in/1`, login, issuer),
    session: async (who = browser): Promise<SessionInfo> =>
      (await who.fetch(`${service.url}/console/api/session`)).json() as Promise<SessionInfo>,
  };
}

const csrfOf = (session: SessionInfo) => (session.signedIn ? session.csrf : '');

const post = (browser: Browser, { url }: Service, path: string, csrf: string, body: object = {}) =>
  browser.fetch(`${url}/console/api/${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-CSRF-Token': csrf },
    body: JSON.stringify(body),
  });

for (const inToken of [true, false]) {
  test(`signs in, creates the account once, and finds it again (claims from ${inToken ? 'token' : 'userinfo'})`, async (t) => {
    const { service, browser, comeBack, session } = await start(t, {
      oidc: { inToken },
      service: { signUpCredits: 5 },
    });
    t.like(await session(), { signedIn: false, link: false, providers: [{ id: '1', name: 'Company' }] });

    const answer = await browser.fetch(await comeBack('ann'));
    t.is(answer.status, 302);
    t.is(answer.headers.get('location'), '/console');
    const first = await session();
    t.like(first, {
      signedIn: true,
      operator: false,
      account: { name: 'Person ann', email: 'ann@people.test' },
    });
    const id = first.signedIn ? first.account.id : '';
    t.is((await service.stores.ledger.balance(id)).credits, 20 as never);

    const elsewhere = new Browser();
    await elsewhere.fetch(await comeBack('ann', elsewhere));
    const second = await session(elsewhere);
    t.is(second.signedIn && second.account.id, id);
    t.is((await service.stores.ledger.balance(id)).credits, 20 as never);
    t.deepEqual(
      (await service.audit.list({ limit: 9 })).map(({ action }) => action),
      ['sign-in', 'sign-in', 'credits.grant', 'account.create'],
    );
  });
}

test('a person who deletes the account and signs in again gets no second grant and no new free previews', async (t) => {
  const { service, browser, comeBack, session } = await start(t, {
    service: { signUpCredits: 5, freePreviews: 2 },
  });
  const enter = async (login: string, who = browser) => {
    await who.fetch(await comeBack(login, who));
    const found = await session(who);
    if (!found.signedIn) throw new Error('not signed in');
    const made = await post(who, service, 'keys', found.csrf, { name: 'test' });
    return { ...found, key: ((await made.json()) as { key: string }).key };
  };
  const left = async (key: string) => {
    const answer = await fetch(`${service.url}/v1.0/account`, { headers: { 'X-Api-Key': key } });
    const { data } = (await answer.json()) as {
      data: { attributes: { credits: { total: number }; api: { free_calls: number } } };
    };
    return [data.attributes.credits.total, data.attributes.api.free_calls];
  };
  const image = await scene();
  const preview = async (key: string) =>
    (await service.post(form({ image_file: image }), { 'X-Api-Key': key })).status;

  const first = await enter('ann');
  t.deepEqual(await left(first.key), [5, 2]);
  t.is(await preview(first.key), 200);
  t.deepEqual(await left(first.key), [5, 1]);
  const deleted = await post(browser, service, 'delete', first.csrf, { name: first.account.name });
  t.is(deleted.status, 200);
  t.is(await preview(first.key), 403);

  const second = await enter('ann', new Browser());
  t.not(second.account.id, first.account.id);
  t.deepEqual(await left(second.key), [0, 1]);
  t.is(await preview(second.key), 200);
  t.is(await preview(second.key), 402);
  t.deepEqual(await left((await enter('bob', new Browser())).key), [5, 2]);
  t.deepEqual(await service.stores.ledger.verify(), []);
});

test('cookies are inaccessible to scripts and other sites; behind TLS they are Secure and bound to the host', async (t) => {
  const { browser, comeBack } = await start(t);
  const [line = ''] = (await browser.fetch(await comeBack('ann'))).headers
    .getSetCookie()
    .filter((each) => each.startsWith('cutout-session='));
  t.regex(line, /; path=\/;.*samesite=lax.*; httponly/i);
  t.notRegex(line, /secure/i);

  const secure = await startService(t, { publicUrl: 'https://cutout.example.test' });
  const token = await secure.signIns.createLink(secure.accountId);
  const opened = await post(new Browser(), secure, 'link', '', { token });
  t.is(opened.status, 200);
  t.regex(opened.headers.getSetCookie().join(), /^__Host-cutout-session=.*; path=\/;.*; secure; httponly/i);
});

test('every sign-in changes the session: the previous one is invalid afterwards', async (t) => {
  const { service, browser, comeBack, session } = await start(t);
  browser.setCookie(service.url, 'cutout-session', 'chosen-by-somebody-else');
  await browser.fetch(await comeBack('ann'));
  const first = browser.cookie(service.url, 'cutout-session') ?? '';
  t.not(first, 'chosen-by-somebody-else');
  await browser.fetch(await comeBack('ann'));
  t.not(browser.cookie(service.url, 'cutout-session'), first);
  const old = new Browser();
  old.setCookie(service.url, 'cutout-session', first);
  t.false((await session(old)).signedIn);
});

test('operators are identified by claim or by verified address', async (t) => {
  const { comeBack, session } = await start(t, {
    oidc: {
      claims: (login) => ({
        groups: login === 'carl' ? ['people', 'cutout-admins'] : ['people'],
        email_verified: login !== 'boss2',
        ...(login === 'boss2' && { email: 'boss@people.test' }),
      }),
    },
  });
  const operator = async (login: string) => {
    const browser = new Browser();
    await browser.fetch(await comeBack(login, browser));
    const found = await session(browser);
    return found.signedIn && found.operator;
  };
  t.true(await operator('carl'));
  t.true(await operator('boss'));
  t.false(await operator('ann'));
  t.false(await operator('boss2'), 'an address nobody verified');
});

test('a rule applies to its own provider: claims of another one make nobody an operator', async (t) => {
  const port = await freePort();
  const publicUrl = `http://127.0.0.1:${port}`;
  const returnUrl = `${publicUrl}/console`;
  const claims = (login: string) => ({ groups: login === 'carl' ? ['cutout-admins'] : [] });
  const [one, two] = await Promise.all(
    [1, 2].map((number) =>
      startOidc(t, { redirectUrl: `${publicUrl}/sign-in/${number}/callback`, returnUrl, claims }),
    ),
  );
  if (!one || !two) throw new Error('two providers');
  const { signIn } = loadConfig({
    CUTOUT_PUBLIC_URL: publicUrl,
    CUTOUT_OIDC_ISSUER: `${one.issuer},${two.issuer}`,
    CUTOUT_OIDC_CLIENT_ID: `${one.clientId},${two.clientId}`,
    CUTOUT_OIDC_CLIENT_SECRET: `${one.clientSecret},${two.clientSecret}`,
    CUTOUT_OIDC_OPERATORS: '1:Boss@people.test, 2:second@people.test',
    CUTOUT_OIDC_OPERATOR_CLAIM: '1:groups=cutout-admins',
  });
  const providers = await providersOf(signIn, publicUrl);
  const service = await startService(t, { port, publicUrl, providers });
  const operator = async (login: string, number: 1 | 2) => {
    const browser = new Browser();
    const issuer = number === 1 ? one.issuer : two.issuer;
    await browser.fetch(await throughProvider(browser, `${service.url}/sign-in/${number}`, login, issuer));
    const found = (await (await browser.fetch(`${service.url}/console/api/session`)).json()) as SessionInfo;
    t.true(found.signedIn, login);
    const { status } = await browser.fetch(`${service.url}/console/api/operator/accounts`);
    t.is(status === 200, found.signedIn && found.operator);
    return status === 200;
  };
  t.true(await operator('boss', 1));
  t.false(await operator('boss', 2));
  t.true(await operator('carl', 1));
  t.false(await operator('carl', 2));
  t.true(await operator('second', 2));
  t.false(await operator('second', 1));
});

test('a removed operator loses access with the next request, while signed in', async (t) => {
  const rules = { operators: ['boss@people.test'], operatorClaim: { name: 'groups', value: 'admins' } };
  const options: Partial<ProviderOptions> = rules;
  const { service, server, comeBack, session } = await start(t, {
    oidc: { claims: () => ({ groups: ['admins'] }) },
    provider: options,
  });
  const [provider] = service.providers;
  if (!provider) throw new Error('a provider');
  const change = (changed: Partial<ProviderOptions>) => Object.assign(provider.options, changed);
  const [boss, ann] = [new Browser(), new Browser()];
  await boss.fetch(await comeBack('boss', boss));
  await ann.fetch(await comeBack('ann', ann));
  const standing = async (who: Browser) => {
    const found = await session(who);
    t.true(found.signedIn);
    const grant = await post(who, service, `operator/accounts/${service.accountId}/grant`, csrfOf(found), {
      credits: '1',
      note: 'test',
      reference: String(Math.random()),
    });
    t.is(grant.status, found.signedIn && found.operator ? 200 : 403);
    return found.signedIn && found.operator;
  };
  t.deepEqual([await standing(boss), await standing(ann)], [true, true]);
  change({ operatorClaim: { name: 'groups', value: 'others' } });
  t.deepEqual([await standing(boss), await standing(ann)], [true, false]);
  change({ operators: [] });
  t.deepEqual([await standing(boss), await standing(ann)], [false, false]);
  change({ operatorClaim: { name: 'roles', value: 'admins' } });
  t.deepEqual([await standing(boss), await standing(ann)], [false, false], 'a claim that was not asked for');
  change({ ...rules, issuer: 'https://another.test' });
  t.deepEqual([await standing(boss), await standing(ann)], [false, false], 'another provider in its place');
  change({ issuer: server.issuer });
  t.deepEqual([await standing(boss), await standing(ann)], [true, true]);
});

test('a non-operator sees and changes nothing of other accounts', async (t) => {
  const { service, browser, comeBack, session } = await start(t);
  await browser.fetch(await comeBack('ann'));
  const csrf = csrfOf(await session());
  const account = `operator/accounts/${service.accountId}`;
  const answers = [
    ...['operator/accounts', account, 'operator/audit'].map((path) =>
      browser.fetch(`${service.url}/console/api/${path}`),
    ),
    ...[`${account}/grant`, 'operator/keys/x/revoke'].map((path) => post(browser, service, path, csrf)),
  ];
  for (const answer of await Promise.all(answers)) {
    t.is(answer.status, 403);
    t.regex(await answer.text(), /"code":"operators_only"/);
  }
});

test("a wrong state, another browser's callback and a replayed one are refused", async (t) => {
  const { browser, comeBack, session } = await start(t);
  const refused = async (who: Browser, url: URL) => {
    const answer = await who.fetch(url);
    t.is(answer.headers.get('location'), '/console?problem=refused');
    t.false((await session(who)).signedIn);
  };
  const forged = await comeBack('ann');
  forged.searchParams.set('state', 'another');
  await refused(browser, forged);

  const stolen = await comeBack('ann');
  await refused(new Browser(), stolen);

  const replayed = await comeBack('ann');
  t.is((await browser.fetch(replayed)).headers.get('location'), '/console');
  const thief = new Browser();
  await refused(thief, replayed);
});

test('a callback replayed with its own cookie is refused by the provider', async (t) => {
  const { service, browser, comeBack, session } = await start(t);
  const back = await comeBack('ann');
  const pending = browser.cookie(service.url, 'cutout-sign-in') ?? '';
  await browser.fetch(back);
  const again = new Browser();
  again.setCookie(service.url, 'cutout-sign-in', pending);
  t.is((await again.fetch(back)).headers.get('location'), '/console?problem=refused');
  t.false((await session(again)).signedIn);
});

test('ID tokens: expired, of another nonce, audience, issuer or key are refused; small clock differences are not', async (t) => {
  const { server, session, comeBack } = await start(t);
  const ends = async (...change: Parameters<typeof server.tamper>) => {
    server.tamper(...change);
    const browser = new Browser();
    const answer = await browser.fetch(await comeBack('ann', browser));
    t.is((await session(browser)).signedIn, answer.headers.get('location') === '/console');
    return answer.headers.get('location');
  };
  const now = Math.floor(Date.now() / 1000);
  const refused = '/console?problem=refused';
  t.is(await ends((claims) => ({ ...claims, iat: now - 7200, exp: now - 3600 })), refused);
  t.is(await ends((claims) => ({ ...claims, nonce: 'another' })), refused);
  t.is(await ends((claims) => ({ ...claims, aud: 'another' })), refused);
  t.is(await ends((claims) => ({ ...claims, iss: 'https://another.test' })), refused);
  t.is(await ends((claims) => claims, true), refused);
  t.is(await ends((claims) => ({ ...claims, iat: now + 30, exp: now + 600 })), '/console');
  t.is(await ends((claims) => ({ ...claims, iat: now - 600, exp: now - 30 })), '/console');
});

test('changed keys of the provider are fetched again', async (t) => {
  const { server, browser, comeBack, session } = await start(t);
  await browser.fetch(await comeBack('ann'));
  t.true((await session()).signedIn);
  server.rotate();
  const later = new Browser();
  await later.fetch(await comeBack('ann', later));
  t.true((await session(later)).signedIn);
});

test('a provider that is down leads to a page that says so, and the API keeps working', async (t) => {
  const { service, server, browser, session } = await start(t);
  server.stop();
  const answer = await browser.fetch(`${service.url}/sign-in/1`);
  t.is(answer.headers.get('location'), '/console?problem=provider-down');
  t.false((await session()).signedIn);
  const account = await fetch(`${service.url}/v1.0/account`, { headers: { 'X-Api-Key': service.key } });
  t.is(account.status, 200);
  t.true(service.text().includes('provider down'));
});

test("signing out ends the session here and returns the provider's sign-out page", async (t) => {
  const { service, browser, comeBack, session, issuer } = await start(t);
  await browser.fetch(await comeBack('ann'));
  const before = browser.cookie(service.url, 'cutout-session') ?? '';
  const answer = await post(browser, service, 'sign-out', csrfOf(await session()));
  const { redirect } = (await answer.json()) as { redirect: string };
  t.true(redirect.startsWith(`${issuer}/session/end?`));
  t.is(new URL(redirect).searchParams.get('post_logout_redirect_uri'), `${service.url}/console`);
  t.is(browser.cookie(service.url, 'cutout-session'), undefined);
  const thief = new Browser();
  thief.setCookie(service.url, 'cutout-session', before);
  t.false((await session(thief)).signedIn);
});

test('sessions end when idle, and in any case after their maximum age', async (t) => {
  let now = Date.now();
  const hour = 3_600_000;
  const { comeBack, session } = await start(t, { service: { now: () => now } });
  const idle = new Browser();
  await idle.fetch(await comeBack('ann', idle));
  for (let passed = 1.5; passed < 12; passed += 1.5) {
    now += 1.5 * hour;
    t.true((await session(idle)).signedIn, 'the request before counts');
  }
  now += 1.5 * hour;
  t.false((await session(idle)).signedIn, 'longer than it may take in all');

  const busy = new Browser();
  await busy.fetch(await comeBack('ann', busy));
  now += 2 * hour;
  t.false((await session(busy)).signedIn);
});

test('failed sign-ins of one address are slowed down; the API is not', async (t) => {
  let now = Date.now();
  const { service, comeBack } = await start(t, { service: { attempts: 3, now: () => now } });
  const callback = `${service.url}/sign-in/1/callback?code=x&state=y`;
  for (let i = 0; i < 3; i++) await new Browser().fetch(callback);
  const slowed = await new Browser().fetch(`${service.url}/sign-in/1`);
  t.is(slowed.headers.get('location'), '/console?problem=too-many');
  now += 60_000;
  const browser = new Browser();
  t.is((await browser.fetch(await comeBack('ann', browser))).headers.get('location'), '/console');
});

test('hostile names are stored and returned as text only', async (t) => {
  const name = '<script>alert(1)</script>"\'=cmd|';
  const { service, browser, comeBack, session } = await start(t, {
    oidc: { claims: () => ({ name, groups: ['cutout-admins'] }) },
  });
  await browser.fetch(await comeBack('eve'));
  const found = await session();
  t.is(found.signedIn && found.account.name, name);
  const answer = await browser.fetch(`${service.url}/console/api/operator/accounts?search=script`);
  t.is(answer.headers.get('content-type'), 'application/json; charset=utf-8');
  t.is(answer.headers.get('x-content-type-options'), 'nosniff');
  const { entries } = (await answer.json()) as Page<AccountSummary>;
  t.deepEqual(
    entries.map((account) => account.name),
    [name],
  );
});

test('no session, code, token or secret is in the log', async (t) => {
  const { service, server, browser, comeBack } = await start(t);
  const back = await comeBack('ann');
  await browser.fetch(back);
  const secrets = [
    browser.cookie(service.url, 'cutout-session'),
    back.searchParams.get('code'),
    back.searchParams.get('state'),
    server.clientSecret,
  ];
  for (const secret of secrets) t.false(service.text().includes(secret ?? 'missing'));
});
