import test from 'ava';
import { scene } from '../fixtures/images.ts';
import { errorOf, form, startService } from '../fixtures/service.ts';

test('the balance: exactly six values, fractions as they are, no rate headers', async (t) => {
  const service = await startService(t, { credits: 50, freePreviews: 1 });
  const ask = () => fetch(`${service.url}/v1.0/account`, { headers: { 'X-Api-Key': service.key } });
  const first = await ask();
  t.is(first.status, 200);
  t.is(first.headers.get('content-type'), 'application/json; charset=utf-8');
  t.false([...first.headers.keys()].some((name) => name.startsWith('x-ratelimit')));
  t.is(first.headers.get('x-free-previews-today'), '1');
  t.is(
    await first.text(),
    '{"data":{"attributes":{"credits":{"subscription":0,"payg":50,"enterprise":0,"total":50},"api":{"free_calls":1,"sizes":"all"}}}}',
  );

  for (const size of ['preview', 'preview', 'auto'])
    t.is((await service.post(form({ image_file: await scene(), size }))).status, 200);
  // One free preview, and two for a quarter: 300x200 is no larger than a preview.
  const { data } = (await (await ask()).json()) as { data: unknown };
  t.deepEqual(data, {
    attributes: {
      credits: { subscription: 0, payg: 49.5, enterprise: 0, total: 49.5 },
      api: { free_calls: 0, sizes: 'all' },
    },
  });
});

test('the balance needs a key, has no alias and answers a preflight without a key', async (t) => {
  const service = await startService(t);
  const url = `${service.url}/v1.0/account`;
  t.is((await errorOf(t, await fetch(url))).title, 'Missing API Key');
  t.is((await errorOf(t, await fetch(url, { headers: { 'X-Api-Key': 'x' } }))).title, 'API Key invalid');
  t.is((await fetch(url, { method: 'OPTIONS' })).status, 204);
  const post = await fetch(url, { method: 'POST' });
  t.is(post.status, 405);
  t.is(post.headers.get('allow'), 'GET, HEAD, OPTIONS');
});
