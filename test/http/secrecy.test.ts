import test from 'ava';
import { scene } from '../fixtures/images.ts';
import { eventually, form, startService } from '../fixtures/service.ts';
import { signedEvent, stripeLike, webhookSecret } from '../support/stripe.ts';

test('no key, token, signature, address with a password or byte of an image reaches the log', async (t) => {
  const { options } = await stripeLike(t);
  const token = 'operator-token-of-this-test';
  const service = await startService(t, { adminToken: token, purchases: options, ttlSeconds: 600 });
  const image = await scene({ format: 'png' });
  const base64 = image.toString('base64');
  const secrets = [
    service.key,
    token,
    webhookSecret,
    options.secretKey,
    'wrong-key-of-somebody',
    'order-number-4711',
    'pass-word-in-address',
    'signature-in-address',
    'card-number',
  ];
  const json = { 'Content-Type': 'application/json' };
  const post = (body: object, headers: Record<string, string> = {}) =>
    service.post(JSON.stringify(body), { ...json, ...headers });

  await service.post(form({ image_file: image }), { 'Idempotency-Key': 'order-number-4711' });
  await post({ image_file_b64: base64 });
  await post({ image_file_b64: base64, size: `${base64.slice(0, 40)}` });
  await post({ image_file_b64: `${base64}!` });
  await post({ image_url: 'http://user:pass-word-in-address@a.public.test/' });
  await post({ image_url: 'http://nowhere.public.test/?signature=signature-in-address' });
  await post({
    image_file_b64: base64,
    bg_image_url: 'http://a.public.test/?signature=signature-in-address',
  });
  await post({ image_file_b64: base64 }, { 'X-Api-Key': 'wrong-key-of-somebody' });
  await post({ image_file_b64: base64 }, { Authorization: `Bearer ${service.key}` });
  await service.post(`{"image_file_b64":"${base64}`, json);
  service.engine.failure = new Error('bug');
  await service.post(form({ image_file: await scene({ width: 99 }) }));
  service.engine.failure = undefined;
  await fetch(`${service.url}/v1.0/account?api_key=${service.key}&card-number=1`);
  await fetch(`${service.url}/v1.0/improve`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body: form({ image_file: image, tag: 'x' }),
  });
  await fetch(`${service.url}/admin/v1/accounts`, { headers: { Authorization: `Bearer ${token}` } });
  await fetch(`${service.url}/admin/v1/accounts`, {
    headers: { Authorization: 'Bearer wrong-key-of-somebody' },
  });
  const { body, signature } = signedEvent({});
  for (const signed of [signature, 't=1,v1=00'])
    await fetch(`${service.url}/billing/stripe`, {
      method: 'POST',
      headers: { ...json, 'Stripe-Signature': signed },
      body: new Uint8Array(body),
    });

  await eventually(() => service.lines().filter(({ path }) => typeof path === 'string').length === 17);
  const log = service.text();
  const statuses = new Set(service.lines().map(({ status }) => status));
  for (const status of [200, 400, 403, 500]) t.true(statuses.has(status), String(status));
  for (const secret of [...secrets, signature]) t.false(log.includes(secret), secret);
  // A refused value is reported, truncated; nothing of an image is.
  for (let at = 40; at + 24 < base64.length; at += 24) t.false(log.includes(base64.slice(at, at + 24)));
  t.false(log.includes('IHDR'));
});
