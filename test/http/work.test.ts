import test from 'ava';
import { credits } from '../../src/billing/price.ts';
import { EngineError } from '../../src/engine/types.ts';
import { scene } from '../fixtures/images.ts';
import { dial } from '../fixtures/rawHttp.ts';
import { errorOf, eventually, form, type Service, startService } from '../fixtures/service.ts';

/** Makes every job wait until `release` is called. */
function hold(service: Service): () => void {
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  return release;
}

/** The lines of requests; a broken connection may have one of its own. */
const requestLines = (service: Service) => service.lines().filter(({ method }) => method !== undefined);

test('a client that disconnects cancels its work, is not charged and is a 499 in the log', async (t) => {
  const service = await startService(t, { credits: 1 });
  hold(service);
  const controller = new AbortController();
  const gone = fetch(`${service.url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body: form({ image_file: await scene(), size: 'full' }),
    signal: controller.signal,
  });
  await eventually(() => service.engine.running === 1);
  t.is((await service.balance()).credits, 0);
  controller.abort();
  await t.throwsAsync(gone, { any: true });
  await eventually(() => requestLines(service).length === 1);
  t.is(service.engine.cancelled, 1);
  t.like(requestLines(service)[0], { status: 499, error: 'client_closed' });
  t.is((await service.balance()).credits, 1);
  t.is(await service.stores.ledger.openReservations(), 0);
});

test('a client that disconnects while waiting is never processed', async (t) => {
  const service = await startService(t, { running: 1 });
  const release = hold(service);
  const image = await scene();
  const first = service.post(form({ image_file: image }));
  await eventually(() => service.engine.running === 1);
  const controller = new AbortController();
  const second = fetch(`${service.url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body: form({ image_file: image }),
    signal: controller.signal,
  });
  await eventually(() => service.scheduler.stats.waiting === 1);
  controller.abort();
  await t.throwsAsync(second, { any: true });
  await eventually(() => requestLines(service).length === 1);
  release();
  t.is((await first).status, 200);
  t.is(service.engine.started, 1);
});

test('work that exceeds its time limit is 504 and not charged', async (t) => {
  const service = await startService(t, { timeout: 5, credits: 1 });
  hold(service);
  const answer = await service.post(form({ image_file: await scene(), size: 'full' }));
  t.is(answer.status, 504);
  t.deepEqual(await errorOf(t, answer), {
    title: 'Request timed out',
    code: 'timeout',
    detail: 'The request took longer than 5 s.',
  });
  t.is(service.engine.cancelled, 1);
  t.is((await service.balance()).credits, 1);
});

test('beyond the longest wait the next request is refused at once with Retry-After', async (t) => {
  const service = await startService(t, {
    running: 2,
    workMs: 1000,
    waitMs: 3000,
    credits: 5,
    freePreviews: 0,
  });
  const release = hold(service);
  const image = await scene();
  const accepted = Array.from({ length: 5 }, () => service.post(form({ image_file: image })));
  await eventually(() => service.engine.running === 2 && service.scheduler.stats.waiting === 3);
  const refused = await service.post(form({ image_file: image }));
  t.is(refused.status, 503);
  t.true(Number(refused.headers.get('retry-after')) >= 1);
  t.is((await errorOf(t, refused)).code, 'service_unavailable');
  release();
  for (const one of accepted) t.is((await one).status, 200);
  t.is(service.engine.maxRunning, 2, 'no more than that are decoded at a time');
  t.is((await service.balance()).credits, 5 - 5 * 0.25);
});

test('what is refused before the network runs leaves nothing in the ledger', async (t) => {
  const entriesOf = async ({ stores, accountId }: Service) =>
    (await stores.ledger.statement(accountId)).map(({ kind }) => kind);
  const [image, png] = [await scene(), await scene({ format: 'png' })];
  const large = await scene({ width: 4000, height: 3000 });
  const service = await startService(t, {
    running: 1,
    workMs: 1000,
    waitMs: 500,
    rate: 40,
    memory: { room: 150e6, largestWork: 600e6 },
  });
  const statuses = async (...sent: (readonly [Buffer, string])[]) => {
    const answers: number[] = [];
    for (const [file, size] of sent)
      answers.push((await service.post(form({ image_file: file, size }))).status);
    return answers;
  };
  t.deepEqual(
    await statuses(
      [image.subarray(0, image.length / 2), 'full'],
      [image.subarray(0, image.length / 2), 'preview'],
      [png.fill(0x5a, png.length / 2), 'auto'],
      [large, 'full'],
    ),
    [400, 400, 400, 400],
  );
  t.deepEqual(await entriesOf(service), ['grant']);

  const release = hold(service);
  const working = service.post(form({ image_file: image, size: 'full' }));
  await eventually(() => service.engine.running === 1);
  const before = await entriesOf(service);
  t.deepEqual(await statuses([await scene({ width: 310 }), 'full']), [503]);
  t.deepEqual(await statuses([await scene({ width: 8000, height: 6000 }), 'full']), [429]);
  t.deepEqual(await entriesOf(service), before);
  release();
  t.is((await working).status, 200);

  const poor = await startService(t, { credits: 0, freePreviews: 0 });
  t.is((await poor.post(form({ image_file: image }))).status, 402);
  t.deepEqual(await entriesOf(poor), []);
});

test('where the credits for auto were used while the image was decoded, the result is a preview', async (t) => {
  const service = await startService(t, { credits: 1.25, freePreviews: 0 });
  const { ledger } = service.stores;
  const { reserve } = ledger;
  ledger.reserve = async (account, request) => {
    ledger.reserve = reserve;
    await ledger.post(account, { kind: 'adjust', amount: credits(-1), reference: 'spent meanwhile' });
    return ledger.reserve(account, request);
  };
  const answer = await service.post(form({ image_file: await scene({ width: 1200, height: 800 }) }));
  t.is(answer.status, 200);
  t.is(answer.headers.get('x-credits-charged'), '0.25');
  t.is(answer.headers.get('x-width'), '612');
  t.is((await service.balance()).credits, 0);
});

const engineErrors = [
  ['ENGINE_BAD_INPUT', 400, 'failed_to_read_image', false],
  ['ENGINE_QUEUE_FULL', 503, 'service_unavailable', false],
  ['ENGINE_OUT_OF_MEMORY', 503, 'service_unavailable', true],
  ['ENGINE_DEVICE_MEMORY', 503, 'service_unavailable', true],
  ['ENGINE_DEVICE', 503, 'service_unavailable', true],
  ['ENGINE_CLOSED', 503, 'service_unavailable', false],
  ['ENGINE_MODEL', 500, 'internal_error', true],
  ['ENGINE_RUNTIME', 500, 'internal_error', true],
  ['ENGINE_INTERNAL', 500, 'internal_error', true],
] as const;

for (const [code, status, publicCode, reported] of engineErrors) {
  test(`${code} is ${status} ${publicCode}`, async (t) => {
    const service = await startService(t, { credits: 1 });
    service.engine.failure = new EngineError(code, 'secret: /opt/cutout/engine.cc:42');
    const answer = await service.post(form({ image_file: await scene(), size: 'full' }));
    t.is(answer.status, status);
    t.is(answer.headers.has('retry-after'), status === 503);
    if (code === 'ENGINE_CLOSED') t.is(answer.headers.get('connection'), 'close');
    const error = await errorOf(t, answer);
    t.is(error.code, publicCode);
    t.false(JSON.stringify(error).includes('secret'));
    await eventually(() => service.lines().some(({ method }) => method === 'POST'));
    t.is(service.text().includes('secret'), reported, 'the cause is logged where it is our fault');
    t.is((await service.balance()).credits, 1);
  });
}

test('a bug is 500: the client gets the id of its request, the log the cause', async (t) => {
  const service = await startService(t);
  service.engine.failure = new TypeError('undefined is not an image');
  const answer = await service.post(form({ image_file: await scene() }));
  t.is(answer.status, 500);
  t.deepEqual(await errorOf(t, answer), {
    title: 'Internal server error',
    code: 'internal_error',
    detail: `Request id: ${answer.headers.get('x-request-id')}`,
  });
  t.regex(service.text(), /undefined is not an image[\s\S]*work\.test/);
});

test('starting up: 503 after the key was checked; a wrong key is still 403', async (t) => {
  const service = await startService(t);
  Object.defineProperty(service.health, 'phase', { value: 'starting' });
  const answer = await service.post(form({ image_file: await scene() }));
  t.is(answer.status, 503);
  t.is(answer.headers.get('retry-after'), '5');
  t.is((await errorOf(t, answer)).code, 'service_unavailable');
  t.is((await service.post(form({}), { 'X-Api-Key': 'wrong' })).status, 403);
});

test('shutting down: new work on a kept-alive connection is 503 and closes it', async (t) => {
  const service = await startService(t);
  service.health.stopping();
  const answer = await service.post(form({ image_file: await scene() }));
  t.is(answer.status, 503);
  t.is(answer.headers.get('connection'), 'close');
  t.truthy(answer.headers.get('retry-after'));
  t.is((await errorOf(t, answer)).code, 'service_unavailable');
});

test('closing waits for running work', async (t) => {
  const service = await startService(t);
  const release = hold(service);
  const running = service.post(form({ image_file: await scene() }));
  await eventually(() => service.engine.running === 1);
  service.health.stopping();
  const closed = service.close(10_000);
  await t.throwsAsync(dial(service.address.port));
  release();
  t.is((await running).status, 200);
  t.true(await closed);
});

test('closing cuts off work that takes too long, and waits until it is settled', async (t) => {
  const service = await startService(t, { credits: 1 });
  hold(service);
  const running = service.post(form({ image_file: await scene(), size: 'full' }));
  running.catch(() => {});
  await eventually(() => service.engine.running === 1);
  t.false(await service.close(50));
  t.is(await service.stores.ledger.openReservations(), 0);
  t.is((await service.balance()).credits, 1);
  await t.throwsAsync(running);
});
