import test from 'ava';
import { scene } from '../fixtures/images.ts';
import { rawRequest } from '../fixtures/rawHttp.ts';
import { form, type Service, startService } from '../fixtures/service.ts';

/** Verbatim from docs/contract.md section 2. */
const exposed =
  'X-Type, X-Width, X-Height, X-Max-Width, X-Max-Height, X-Credits-Charged, X-Foreground-Top, X-Foreground-Left, X-Foreground-Width, X-Foreground-Height, X-Uncertainty-Score, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Request-Id, Idempotent-Replayed';
const usual = 'X-Api-Key, Authorization, Content-Type, Accept, Idempotency-Key';

const answers: readonly [number, (service: Service) => Promise<Response>][] = [
  [200, async (service) => service.post(form({ image_file: await scene() }))],
  [200, async ({ url, key }) => fetch(`${url}/v1.0/account`, { headers: { 'X-Api-Key': key } })],
  [400, async (service) => service.post(form({}))],
  [402, async (service) => service.post(form({ image_file: await scene(), size: 'full' }))],
  [403, async ({ url }) => fetch(`${url}/v1.0/improve`, { method: 'POST' })],
  [404, async ({ url }) => fetch(`${url}/v1.0/nothing`)],
  [405, async ({ url }) => fetch(`${url}/v1.0/cutout`, { method: 'DELETE' })],
  [415, async (service) => service.post('x', { 'Content-Type': 'text/plain' })],
  [
    429,
    async (service) => {
      await service.post(form({ image_file: await scene() }));
      return service.post(form({ image_file: await scene({ width: 1500, height: 1000 }) }));
    },
  ],
  [
    500,
    async (service) => {
      service.engine.failure = new Error('bug');
      return service.post(form({ image_file: await scene() }));
    },
  ],
  [
    503,
    async (service) => {
      service.health.stopping();
      return service.post(form({ image_file: await scene() }));
    },
  ],
];

for (const [number, [status, ask]] of answers.entries()) {
  test(`a page of any origin can read a whole answer: ${number + 1}, ${status}`, async (t) => {
    const service = await startService(t, { credits: 0, rate: 2 });
    const answer = await ask(service);
    t.is(answer.status, status);
    t.is(answer.headers.get('access-control-allow-origin'), '*');
    t.is(answer.headers.get('access-control-expose-headers'), exposed);
    t.is(answer.headers.get('allow') !== null, status === 405);
    const retry = answer.headers.get('retry-after');
    t.is(retry !== null, status === 429 || status === 503);
    if (retry !== null) t.regex(retry, /^[1-9]\d*$/);
  });
}

test('input that is not HTTP is answered with the same headers', async (t) => {
  const service = await startService(t);
  const answer = await rawRequest(service.address.port, (socket) => void socket.write('NONSENSE\r\n\r\n'));
  t.is(answer.status, 400);
  t.is(answer.headers['access-control-allow-origin'], '*');
  t.is(answer.headers['access-control-expose-headers'], exposed);
});

for (const path of ['cutout', 'removebg', 'account', 'improve']) {
  test(`preflight of ${path}: 204 without a key, with the requested headers`, async (t) => {
    const service = await startService(t);
    const ask = (headers: Record<string, string>) =>
      fetch(`${service.url}/v1.0/${path}`, { method: 'OPTIONS', headers: { Origin: 'null', ...headers } });
    const plain = await ask({});
    t.is(plain.status, 204);
    t.is(await plain.text(), '');
    t.is(plain.headers.get('access-control-allow-origin'), '*');
    t.is(plain.headers.get('access-control-allow-methods'), 'GET, POST, OPTIONS');
    t.is(plain.headers.get('access-control-allow-headers'), usual);
    t.is(plain.headers.get('access-control-max-age'), '86400');

    const more = await ask({
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'x-api-key, x-own, not a name, x-own',
    });
    t.is(more.status, 204);
    t.is(more.headers.get('access-control-allow-headers'), `${usual}, x-own`);
  });
}

test('a preflight of an unknown path is 404', async (t) => {
  const service = await startService(t);
  t.is((await fetch(`${service.url}/v1.0/nothing`, { method: 'OPTIONS' })).status, 404);
});
