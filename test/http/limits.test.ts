import test from 'ava';
import { scene } from '../fixtures/images.ts';
import { errorOf, eventually, form, startService } from '../fixtures/service.ts';
import { TestClock } from '../support/stores.ts';

const rateOf = (answer: Response) =>
  ['limit', 'remaining', 'reset'].map((name) => answer.headers.get(`x-ratelimit-${name}`));

test('each call counts its input megapixels, rounded up; the first opens the window', async (t) => {
  const clock = new TestClock('2026-11-21T12:00:00Z');
  const reset = String(clock.at / 1000 + 60);
  const service = await startService(t, { rate: 5, now: clock.now });
  const small = form({ image_file: await scene() });
  const large = form({ image_file: await scene({ width: 1500, height: 1000 }) });

  t.deepEqual(rateOf(await service.post(small)), ['5', '4', reset]);
  clock.forward(30_000);
  t.deepEqual(rateOf(await service.post(large)), ['5', '2', reset]);
  t.deepEqual(rateOf(await service.post(small)), ['5', '1', reset]);

  const refused = await service.post(large);
  t.is(refused.status, 429);
  t.deepEqual(rateOf(refused), ['5', '1', reset]);
  t.is(refused.headers.get('retry-after'), '30');
  t.like(await errorOf(t, refused), { code: 'rate_limit_exceeded', title: 'Rate limit exceeded' });

  t.deepEqual(rateOf(await service.post(small)), ['5', '0', reset]);
  clock.forward(30_000);
  t.deepEqual(rateOf(await service.post(large)), ['5', '3', String(clock.at / 1000 + 60)]);
});

test('a used-up window is 429 before the body is read, for cutout only', async (t) => {
  const clock = new TestClock();
  const service = await startService(t, { rate: 1, now: clock.now });
  t.is((await service.post(form({ image_file: await scene() }))).status, 200);
  const refused = await service.post('x', { 'Content-Type': 'text/plain' });
  t.is(refused.status, 429);
  t.deepEqual(rateOf(refused).slice(0, 2), ['1', '0']);
  t.is(refused.headers.get('retry-after'), '60');
  // A wrong key is reported first.
  t.is((await service.post('x', { 'X-Api-Key': 'wrong' })).status, 403);
  const account = await fetch(`${service.url}/v1.0/account`, { headers: { 'X-Api-Key': service.key } });
  t.is(account.status, 200);
});

test('429 after failed keys has the rate headers too; after the reset the client is accepted', async (t) => {
  const clock = new TestClock('2026-11-21T12:00:00Z');
  const service = await startService(t, { attempts: 3, rate: 500, now: clock.now });
  const guess = () => service.post('x', { 'X-Api-Key': 'a-key-that-nobody-has' });
  for (let i = 0; i < 3; i++) {
    const wrong = await guess();
    t.is(wrong.status, 403);
    t.deepEqual(rateOf(wrong), [null, null, null]);
  }
  clock.forward(20_000);
  const refused = await guess();
  t.is(refused.status, 429);
  t.is(refused.headers.get('retry-after'), '40');
  t.deepEqual(rateOf(refused), ['500', '0', String(clock.at / 1000 + 40)]);
  t.is((await errorOf(t, refused)).code, 'rate_limit_exceeded');
  clock.forward(40_000);
  t.is((await guess()).status, 403);
});

test('calls that fail count what they had decoded, and carry no rate headers', async (t) => {
  const clock = new TestClock();
  const service = await startService(t, { rate: 10, now: clock.now, credits: 0 });
  const failures: Record<string, Awaited<ReturnType<typeof scene>> | string> = {
    unknown_foreground: await scene({ subject: 'none' }),
    failed_to_read_image: (await scene()).subarray(0, 900),
  };
  for (const [code, image] of Object.entries(failures)) {
    const answer = await service.post(form({ image_file: image }));
    t.is((await errorOf(t, answer)).code, code);
    t.deepEqual(rateOf(answer), [null, null, null]);
  }
  const poor = await service.post(form({ image_file: await scene(), size: 'full' }));
  t.is((await errorOf(t, poor)).code, 'insufficient_credits');
  clock.forward(20_000);
  const first = await service.post(form({ image_file: await scene() }));
  // Of the three before it, the two that were decoded.
  t.deepEqual(rateOf(first), ['10', '7', String(clock.at / 1000 + 40)]);
});

test('without a rate limit the headers are present all the same', async (t) => {
  const service = await startService(t, { rate: 0 });
  for (let call = 0; call < 2; call++) {
    const [limit, remaining, reset] = rateOf(await service.post(form({ image_file: await scene() })));
    t.true(Number(limit) > 500 && Number(remaining) > 500 && Number(reset) > Date.now() / 1000);
  }
});

test('concurrent calls of an account are limited; one more is 429 and takes nothing', async (t) => {
  const service = await startService(t, { concurrency: 2, credits: 10 });
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  const call = async () => service.post(form({ image_file: await scene(), size: 'full' }));
  const running = [call(), call()];
  await eventually(() => service.engine.running === 2);
  const refused = await call();
  t.is(refused.status, 429);
  t.is(refused.headers.get('retry-after'), '1');
  t.deepEqual(rateOf(refused).slice(0, 2), ['500', '498']);
  t.is((await errorOf(t, refused)).code, 'rate_limit_exceeded');
  t.is((await service.balance()).credits, 8);

  release();
  for (const answer of await Promise.all(running)) t.is(answer.status, 200);
  t.is((await call()).status, 200);
});

test('Server-Timing lists the stages of the work', async (t) => {
  const service = await startService(t);
  const answer = await service.post(form({ image_file: await scene() }));
  const stages = (answer.headers.get('server-timing') ?? '').split(', ');
  t.true(stages.every((stage) => /^[a-z]+;dur=\d+\.\d$/.test(stage)));
  const names = stages.map((stage) => stage.split(';')[0]);
  t.deepEqual(names, [
    'upload',
    'admission',
    'decode',
    'reserve',
    'queue',
    'prepare',
    'infer',
    'matte',
    'encode',
    'settle',
  ]);
});

test('Server-Timing has the wait for admission', async (t) => {
  const service = await startService(t, { running: 1 });
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  const image = await scene();
  const first = service.post(form({ image_file: image }));
  await eventually(() => service.engine.running === 1);
  const second = service.post(form({ image_file: image, size: 'full' }));
  await eventually(() => service.scheduler.stats.waiting === 1);
  const from = performance.now();
  t.is((await fetch(`${service.url}/health/live`)).status, 200);
  const waited = performance.now() - from;
  release();
  await first;
  const timing = (await second).headers.get('server-timing') ?? '';
  const admission = Number(/admission;dur=([\d.]+)/.exec(timing)?.[1]);
  t.true(admission >= Math.floor(waited), `${timing} after ${waited} ms`);
});
