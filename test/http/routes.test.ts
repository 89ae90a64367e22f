import test from 'ava';
import { Health } from '../../src/ops/health.ts';
import { errorOf, eventually, startService } from '../fixtures/service.ts';

test('an unknown path is 404 in the envelope, with the headers of every answer', async (t) => {
  const server = await startService(t);
  const answer = await fetch(`${server.url}/v2.0/nothing`, { method: 'POST', body: 'x' });
  t.is(answer.status, 404);
  t.is(answer.headers.get('content-type'), 'application/json; charset=utf-8');
  t.is(answer.headers.get('access-control-allow-origin'), '*');
  t.regex(answer.headers.get('access-control-expose-headers') ?? '', /X-Credits-Charged/);
  t.regex(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
  t.is(
    await answer.text(),
    '{"errors":[{"title":"Not found","code":"not_found","detail":"No such path: /v2.0/nothing"}]}',
  );
});

test('a known path with another method is 405 with Allow', async (t) => {
  const server = await startService(t);
  const answer = await fetch(`${server.url}/health/live`, { method: 'DELETE' });
  t.is(answer.status, 405);
  t.is(answer.headers.get('allow'), 'GET, HEAD, OPTIONS');
  t.like(await errorOf(t, answer), { code: 'method_not_allowed', title: 'Method not allowed' });
});

test('health: live at once, ready only while the network is warm', async (t) => {
  const health = new Health();
  const server = await startService(t, { health });
  const status = async (path: string) => (await fetch(server.url + path)).status;
  t.is(await status('/health/live'), 200);
  const starting = await fetch(`${server.url}/health/ready`);
  t.is(starting.status, 503);
  t.truthy(Number(starting.headers.get('retry-after')) >= 1);
  health.ready();
  t.is(await status('/health/ready'), 200);
  health.stopping();
  const stopping = await fetch(`${server.url}/health/ready`);
  t.is(stopping.status, 503);
  t.is(stopping.headers.get('connection'), 'close');
  t.is(await status('/health/live'), 200);
});

test('each request is one line of the log', async (t) => {
  const server = await startService(t);
  const answer = await fetch(`${server.url}/nothing?secret=1`);
  await answer.text();
  await eventually(() => server.lines().length > 0);
  const [line, ...more] = server.lines();
  t.is(more.length, 0);
  t.like(line, { method: 'GET', path: '/nothing', status: 404, error: 'not_found' });
  t.is(line?.['request'], answer.headers.get('x-request-id'));
  t.false(server.text().includes('secret'));
});
