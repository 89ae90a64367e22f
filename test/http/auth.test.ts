import test from 'ava';
import { scene } from '../fixtures/images.ts';
import { errorOf, form, startService } from '../fixtures/service.ts';

const missing = {
  title: 'Missing API Key',
  code: 'auth_failed',
  detail: 'Send your key in the X-Api-Key header.',
};
const wrong = {
  title: 'API Key invalid',
  code: 'auth_failed',
  detail: 'The given API key does not exist or was revoked.',
};

test('no key and an empty key are 403 Missing API Key; query and form are not read for it', async (t) => {
  const service = await startService(t);
  const body = () =>
    form({ image_url: 'http://a.public.test/', api_key: service.key, 'X-Api-Key': service.key });
  for (const headers of [
    {},
    { 'X-Api-Key': '' },
    { Authorization: 'Bearer ' },
    { Authorization: 'Basic abc' },
  ]) {
    const answer = await fetch(`${service.url}/v1.0/cutout?api_key=${service.key}`, {
      method: 'POST',
      headers: headers as Record<string, string>,
      body: body(),
    });
    t.is(answer.status, 403);
    t.deepEqual(await errorOf(t, answer), missing);
  }
});

test('unknown and revoked keys are 403, before the body is read', async (t) => {
  const service = await startService(t);
  const answer = await service.post('no form at all', {
    'X-Api-Key': 'nonsense',
    'Content-Type': 'text/plain',
  });
  t.is(answer.status, 403);
  t.deepEqual(await errorOf(t, answer), wrong);
  const [key] = await service.stores.accounts.keys(service.accountId);
  await service.stores.accounts.revokeKey(key?.id ?? '');
  t.deepEqual(await errorOf(t, await service.post(form({ image_file: await scene() }))), wrong);
});

test('Authorization: Bearer is a key too; X-Api-Key takes precedence', async (t) => {
  const service = await startService(t);
  const status = async (headers: Record<string, string>) => {
    const answer = await fetch(`${service.url}/v1.0/cutout`, {
      method: 'POST',
      headers,
      body: form({ image_file: await scene() }),
    });
    return answer.status;
  };
  t.is(await status({ authorization: `Bearer ${service.key}` }), 200);
  t.is(await status({ Authorization: `bearer  ${service.key}` }), 200);
  t.is(await status({ 'X-API-KEY': service.key, Authorization: 'Bearer wrong' }), 200);
  t.is(await status({ 'x-api-key': 'wrong', Authorization: `Bearer ${service.key}` }), 403);
});

test('an unknown path is 404 before the key is checked', async (t) => {
  const service = await startService(t);
  t.is((await fetch(`${service.url}/v1.0/nothing`, { method: 'POST' })).status, 404);
  const answer = await fetch(`${service.url}/v1.0/cutout`);
  t.is(answer.status, 405);
  t.is(answer.headers.get('allow'), 'OPTIONS, POST');
});

test('preflight: 204 without a key, with the requested headers', async (t) => {
  const service = await startService(t);
  for (const path of ['/v1.0/cutout', '/v1.0/removebg']) {
    const answer = await fetch(service.url + path, {
      method: 'OPTIONS',
      headers: {
        Origin: 'null',
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'x-api-key, x-custom, bad header, content-type',
      },
    });
    t.is(answer.status, 204);
    t.is(await answer.text(), '');
    t.like(Object.fromEntries(answer.headers), {
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, POST, OPTIONS',
      'access-control-allow-headers':
        'X-Api-Key, Authorization, Content-Type, Accept, Idempotency-Key, x-custom',
      'access-control-max-age': '86400',
    });
  }
  t.is((await fetch(`${service.url}/nothing`, { method: 'OPTIONS' })).status, 404);
});
