import test from 'ava';
import { errorOf, startService } from '../fixtures/service.ts';

const tokens = {
  adminToken: 'operator-token-of-this-test',
  metricsToken: 'metrics-token-of-this-test',
};

for (const [name, path, token] of [
  ['operator', '/admin/v1/accounts', tokens.adminToken],
  ['metrics', '/metrics', tokens.metricsToken],
] as const)
  test(`${name} token: after several wrong ones an address has to wait, whatever it sends, and no other address`, async (t) => {
    let now = Date.now();
    const service = await startService(t, {
      ...tokens,
      metrics: true,
      attempts: 3,
      proxies: 1,
      now: () => now,
    });
    const ask = (authorization: string | undefined, from = '192.0.2.1', where: string = path) =>
      fetch(service.url + where, {
        headers: { 'X-Forwarded-For': from, ...(authorization && { authorization }) },
      });
    // No wrong token came from these.
    for (let i = 0; i < 10; i++) t.is((await ask(undefined)).status, 403);
    for (let i = 0; i < 10; i++) t.is((await ask(`Bearer ${token}`)).status, 200);
    for (let i = 0; i < 3; i++) t.is((await ask(`Bearer ${token}${i}`)).status, 403);

    now += 20_000;
    for (const sent of [`${token}x`, token]) {
      const slowed = await ask(`Bearer ${sent}`);
      t.is(slowed.status, 429);
      t.is(slowed.headers.get('retry-after'), '40');
      const error = await errorOf(t, slowed);
      t.is(error.code, 'rate_limit_exceeded');
      t.regex(error.detail, new RegExp(`${name} token`));
      t.false(error.detail.includes(token));
    }
    t.is((await ask(`Bearer ${token}`, '192.0.2.2')).status, 200, 'another address');
    for (const [where, other] of [
      ['/admin/v1/accounts', tokens.adminToken],
      ['/metrics', tokens.metricsToken],
    ] as const)
      if (where !== path) t.is((await ask(`Bearer ${other}`, '192.0.2.1', where)).status, 200);
    const account = await fetch(`${service.url}/v1.0/account`, {
      headers: { 'X-Api-Key': service.key, 'X-Forwarded-For': '192.0.2.1' },
    });
    t.is(account.status, 200, 'keys are another matter');

    now += 40_000;
    t.is((await ask(`Bearer ${token}`)).status, 200);
  });
