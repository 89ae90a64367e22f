import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { credits, toCredits } from '../../src/billing/price.ts';
import { scene } from '../fixtures/images.ts';
import { dial } from '../fixtures/rawHttp.ts';
import { errorOf, eventually, form, type Service, startService } from '../fixtures/service.ts';
import { samplesOf } from '../support/prometheus.ts';

const keep = { ttlSeconds: 600, credits: 10 };

/** A different image each time, all with the same subject. */
const imageOf = (serial: number) => scene({ width: 300 + serial, height: 200, format: 'png' });

const post = async (service: Service, serial: number, key?: string, fields: Record<string, string> = {}) =>
  service.post(
    form({ image_file: await imageOf(serial), size: 'full', ...fields }),
    key === undefined ? {} : { 'Idempotency-Key': key },
  );

function hold(service: Service): () => void {
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  return () => {
    service.engine.hold = undefined;
    release();
  };
}

/** That many calls wait for delayed work: they have arrived and hashed their image. */
async function arrived(service: Service, calls: number): Promise<void> {
  await eventually(() => service.calls() === calls);
  await new Promise((resolve) => setTimeout(resolve, 100));
}

/** The metrics agree with the ledger, which has one charge. */
async function chargesAreCounted(t: ExecutionContext, service: Service): Promise<void> {
  const [row, ...others] = await service.stores.ledger.usage();
  t.like(row, { payment: 'full', calls: 1, credits: credits(1) });
  t.is(others.length, 0);
  const seen = samplesOf(await service.metrics.text());
  t.is(seen.get('cutout_charges_total{payment="full"}'), row?.calls);
  t.is(seen.get('cutout_charged_credits_total{payment="full"}'), toCredits(row?.credits ?? credits(0)));
}

const changing = new Set([
  'date',
  'x-request-id',
  'server-timing',
  'x-credits-charged',
  'idempotent-replayed',
  'keep-alive',
]);
const sameHeaders = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => !changing.has(name)));

test('the same image with the same settings: same bytes and headers, no charge, no rate', async (t) => {
  const service = await startService(t, keep);
  const first = await post(service, 1, undefined, { format: 'PNG', type: 'graphics' });
  // The same, spelled differently.
  const second = await post(service, 1, 'any', {
    format: 'png',
    type: 'graphic',
    channels: 'RGBA',
    roi: '0 0 100% 100%',
    scale: 'original',
    position: 'original',
  });
  t.is(first.headers.get('x-credits-charged'), '1');
  t.is(first.headers.get('idempotent-replayed'), null);
  t.is(second.status, 200);
  t.is(second.headers.get('x-credits-charged'), '0');
  t.is(second.headers.get('idempotent-replayed'), 'true');
  t.is(second.headers.get('server-timing'), null);
  t.is(first.headers.get('x-ratelimit-remaining'), '499');
  t.deepEqual(sameHeaders(second), sameHeaders(first));
  t.deepEqual(Buffer.from(await second.arrayBuffer()), Buffer.from(await first.arrayBuffer()));
  t.is(service.engine.started, 1);
  t.is((await service.balance()).credits, 9);

  t.is((await post(service, 1, undefined, { format: 'jpg' })).headers.get('x-credits-charged'), '1');
  t.is((await post(service, 2, undefined, { format: 'png' })).headers.get('x-credits-charged'), '1');
});

test('the repeat chooses between JSON and bytes', async (t) => {
  const service = await startService(t, keep);
  const first = await post(service, 1);
  const body = form({ image_file: await imageOf(1), size: 'full' });
  const second = await service.post(body, { Accept: 'application/json' });
  t.is(second.headers.get('idempotent-replayed'), 'true');
  const { data } = (await second.json()) as { data: { result_b64: string } };
  t.deepEqual(Buffer.from(data.result_b64, 'base64'), Buffer.from(await first.arrayBuffer()));
});

test('the same key with another image returns the cached result, before base64 is decoded', async (t) => {
  const service = await startService(t, keep);
  const first = Buffer.from(await (await post(service, 1, 'order-1')).arrayBuffer());
  const again = await post(service, 2, 'order-1');
  t.is(again.headers.get('idempotent-replayed'), 'true');
  t.deepEqual(Buffer.from(await again.arrayBuffer()), first);
  const broken = await service.post(form({ image_file_b64: '***' }), { 'Idempotency-Key': 'order-1' });
  t.is(broken.status, 200);
  // Options are checked all the same.
  const wrong = await post(service, 1, 'order-1', { size: 'huge' });
  t.is((await errorOf(t, wrong)).code, 'invalid_size');
  // Another key, another image.
  t.is((await post(service, 2, 'order-2')).headers.get('x-credits-charged'), '1');
});

test('keys and images are per account', async (t) => {
  const service = await startService(t, keep);
  await post(service, 1, 'order-1');
  const other = await service.stores.accounts.create('Other');
  const { key } = await service.stores.accounts.createKey(other.id);
  const answer = await service.post(form({ image_file: await imageOf(1), size: 'full' }), {
    'X-Api-Key': key,
    'Idempotency-Key': 'order-1',
  });
  t.is((await errorOf(t, answer)).code, 'insufficient_credits');
});

test('concurrent equal calls share one job and one charge', async (t) => {
  const service = await startService(t, keep);
  const release = hold(service);
  const calls = [post(service, 1), post(service, 1), post(service, 1, 'a'), post(service, 2, 'b')];
  await eventually(() => service.engine.running === 2);
  const late = post(service, 3, 'b');
  await arrived(service, 5);
  release();
  const answers = await Promise.all([...calls, late]);
  for (const answer of answers) t.is(answer.status, 200);
  const charged = answers.map(({ headers }) => headers.get('x-credits-charged')).sort();
  t.deepEqual(charged, ['0', '0', '0', '1', '1']);
  t.is(service.engine.started, 2);
  t.is((await service.balance()).credits, 8);
});

test('if the first call fails, the second is processed', async (t) => {
  const service = await startService(t, keep);
  const release = hold(service);
  const first = post(service, 1, 'k');
  await eventually(() => service.engine.running === 1);
  const second = post(service, 1, 'k');
  await arrived(service, 2);
  service.engine.failure = new Error('broken once');
  release();
  t.is((await first).status, 500);
  service.engine.failure = undefined;
  t.is((await second).status, 200);
  t.is((await second).headers.get('x-credits-charged'), '1');
  t.is((await service.balance()).credits, 9);
  t.deepEqual(await service.stores.ledger.verify(), []);
});

test('if the first call disconnects, its work continues for the second, which pays and reports it', async (t) => {
  const service = await startService(t, { ...keep, metrics: true });
  const release = hold(service);
  const controller = new AbortController();
  const first = fetch(`${service.url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body: form({ image_file: await imageOf(1), size: 'full' }),
    signal: controller.signal,
  });
  await eventually(() => service.engine.running === 1);
  const second = post(service, 1);
  await arrived(service, 2);
  controller.abort();
  await t.throwsAsync(first, { any: true });
  await eventually(() => service.lines().some(({ status }) => status === 499));
  release();
  t.is((await second).status, 200);
  t.is((await second).headers.get('x-credits-charged'), '1');
  t.is((await second).headers.get('idempotent-replayed'), null);
  t.is(service.engine.started, 1);
  t.is(service.engine.cancelled, 0);
  t.is((await service.balance()).credits, 9);
  await eventually(async () => (await service.stores.ledger.openReservations()) === 0);
  t.is((await post(service, 1)).headers.get('x-credits-charged'), '0');
  await chargesAreCounted(t, service);
});

/** An image whose result is larger than what two sockets buffer for a client that does not read. */
const noise = () =>
  sharp(randomBytes(2000 * 1700 * 3), { raw: { width: 2000, height: 1700, channels: 3 } })
    .png({ compressionLevel: 0 })
    .toBuffer();

/** A client that has received the beginning of its answer and reads no more of it. */
async function slowReader(service: Service, image: Buffer, key: string) {
  const head = [
    'POST /v1.0/cutout HTTP/1.1',
    'Host: localhost',
    'Connection: close',
    `X-Api-Key: ${service.key}`,
    `Idempotency-Key: ${key}`,
    'Content-Type: multipart/form-data; boundary=b',
  ];
  const part = (name: string) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n`;
  const body = Buffer.concat([
    Buffer.from(`${part('size')}full\r\n${part('format')}png\r\n${part('image_file')}`),
    image,
    Buffer.from('\r\n--b--\r\n'),
  ]);
  const socket = await dial(service.address.port);
  socket.write(`${head.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n`);
  socket.write(body);
  const [first] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  return { socket, first };
}

// Serial: generating noise takes time that other tests wait for.
test.serial('the next answer reports the charge of one that was never sent', async (t) => {
  const service = await startService(t, { ...keep, metrics: true });
  const large = await noise();
  const { socket } = await slowReader(service, large, 'k');
  socket.destroy();
  await eventually(() => service.lines().some(({ status }) => status === 499));

  const again = () => service.post(form({ image_file: large, size: 'full', format: 'png' }));
  const second = await again();
  t.is(second.headers.get('x-credits-charged'), '1');
  t.is(second.headers.get('idempotent-replayed'), null);
  t.is((await again()).headers.get('x-credits-charged'), '0');
  t.is(service.engine.started, 1);
  t.is((await service.balance()).credits, 9, 'charged once');
  await chargesAreCounted(t, service);
});

test.serial('the charge of an answer being read cannot be refunded by other requests', async (t) => {
  const service = await startService(t, keep);
  const { ledger } = service.stores;
  const large = await noise();
  const { socket, first } = await slowReader(service, large, 'order');
  t.regex(first.toString('latin1'), /^HTTP\/1.1 200 /);
  t.is((await service.balance()).credits, 9);

  // Another image under its key, of which nothing is sent.
  service.loseResults();
  service.engine.failure = new Error('no subject');
  t.is((await post(service, 1, 'order')).status, 500);
  service.engine.failure = undefined;
  t.is((await service.balance()).credits, 9);
  // The same image, for a client that disconnects.
  service.loseResults();
  const release = hold(service);
  const leaving = new AbortController();
  const again = fetch(`${service.url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body: form({ image_file: large, size: 'full', format: 'png' }),
    signal: leaving.signal,
  });
  await eventually(() => service.engine.running === 1);
  t.is(await ledger.openReservations(), 2);
  leaving.abort();
  await t.throwsAsync(again, { any: true });
  await eventually(async () => (await ledger.openReservations()) === 1);
  release();
  t.is((await service.balance()).credits, 9);

  // Its own reader gets all of it.
  socket.resume();
  await once(socket, 'end');
  await eventually(async () => (await ledger.openReservations()) === 0);
  t.is((await service.balance()).credits, 9);
  t.deepEqual(
    (await ledger.statement(service.accountId)).filter(({ kind }) => kind === 'refund'),
    [],
  );
  t.deepEqual(await ledger.verify(), []);
});

test.serial('an error costs nothing although the ledger was slow to charge', async (t) => {
  const service = await startService(t, { ...keep, timeout: 5 });
  const { database, ledger } = service.stores;
  const release = hold(service);
  const answer = post(service, 1, 'k');
  await eventually(() => service.engine.running === 1);
  let go: (() => void) | undefined;
  const slow = database.exclusive(
    () =>
      new Promise<void>((resolve) => {
        go = resolve;
      }),
  );
  await eventually(() => go !== undefined);
  release();
  t.is((await answer).status, 504);
  go?.();
  await slow;
  await eventually(async () => (await ledger.openReservations()) === 0);
  t.is((await service.balance()).credits, 10);
  t.deepEqual(await ledger.verify(), []);
  const again = await post(service, 1, 'k');
  t.deepEqual([again.status, again.headers.get('x-credits-charged')], [200, '1']);
});

/** All work in progress expires, as after a suspension of the machine or a changed clock. */
async function expire({ stores }: Service): Promise<void> {
  await stores.database.run('UPDATE answer SET expires_at = 0');
  await stores.ledger.sweep();
}

test('work that outlived its reservation is charged all the same, and its repeat is free', async (t) => {
  const service = await startService(t, { ...keep, freePreviews: 0 });
  const release = hold(service);
  const call = post(service, 1);
  await eventually(() => service.engine.running === 1);
  await expire(service);
  t.is((await service.balance()).credits, 10);
  release();
  const answer = await call;
  t.deepEqual([answer.status, answer.headers.get('x-credits-charged')], [200, '1']);
  await answer.arrayBuffer();
  const repeat = await post(service, 1);
  t.deepEqual([repeat.status, repeat.headers.get('x-credits-charged')], [200, '0']);
  await repeat.arrayBuffer();
  await eventually(async () => (await service.stores.ledger.openReservations()) === 0);
  t.is((await service.balance()).credits, 9);
  t.deepEqual(await service.stores.ledger.verify(), []);
});

test('work that outlived its reservation and cannot be paid any more is not delivered', async (t) => {
  const service = await startService(t, { ...keep, freePreviews: 0, credits: 1 });
  const release = hold(service);
  const call = post(service, 1);
  await eventually(() => service.engine.running === 1);
  await expire(service);
  const spent = { kind: 'adjust', amount: credits(-0.5) } as const;
  await service.stores.ledger.post(service.accountId, spent);
  release();
  const answer = await call;
  t.is(answer.status, 402);
  t.is((await errorOf(t, answer)).detail, 'This request needs 1 credit, the balance is 0.5.');
  t.is((await service.balance()).credits, 0.5);
  t.is(await service.stores.ledger.openReservations(), 0);
  t.is((await post(service, 1)).status, 402, 'and not kept');
  t.deepEqual(await service.stores.ledger.verify(), []);
});

test('a refunded charge does not pay for repeats', async (t) => {
  const service = await startService(t, { ...keep, freePreviews: 0 });
  const { ledger } = service.stores;
  const charged = async (key?: string) => {
    const answer = await post(service, 1, key);
    await answer.arrayBuffer();
    return answer.headers.get('x-credits-charged');
  };
  t.is(await charged('k'), '1');
  t.is(await charged('k'), '0');
  const [reserved] = (await ledger.statement(service.accountId)).filter(({ kind }) => kind === 'reserve');
  t.true(await ledger.refund(service.accountId, reserved?.id ?? 0));
  t.is((await service.balance()).credits, 10);
  t.is(await charged('k'), '1');
  t.is(await charged(), '0');
  t.is((await service.balance()).credits, 9);
  t.is(service.engine.started, 2);
  t.deepEqual(await ledger.verify(), []);
});

test('errors are not cached', async (t) => {
  const service = await startService(t, keep);
  service.engine.failure = new Error('broken once');
  t.is((await post(service, 1, 'k')).status, 500);
  service.engine.failure = undefined;
  t.is((await post(service, 1, 'k')).headers.get('x-credits-charged'), '1');
});

test('a result expires', async (t) => {
  const service = await startService(t, { ...keep, ttlSeconds: 8 });
  await post(service, 1, 'k');
  t.is((await post(service, 1, 'k')).headers.get('x-credits-charged'), '0');
  await new Promise((resolve) => setTimeout(resolve, 8100));
  t.is((await post(service, 1, 'k')).headers.get('x-credits-charged'), '1');
});

test('a repeat whose cached result is lost is processed again, free', async (t) => {
  const service = await startService(t, { ...keep, freePreviews: 0 });
  const charged = async (serial: number, key?: string, fields: Record<string, string> = {}) => {
    const answer = await post(service, serial, key, fields);
    t.is(answer.status, 200);
    return answer.headers.get('x-credits-charged');
  };
  t.is(await charged(1, 'k'), '1');
  service.loseResults();
  t.is(await charged(1), '0', 'the same image and settings');
  t.is(service.engine.started, 2);
  service.loseResults();
  t.is(await charged(1, undefined, { size: 'preview' }), '0.25', 'other settings');
  service.loseResults();
  t.is(await charged(2, 'k'), '1', 'another image under the same key');
  t.is(await charged(3, 'k'), '0', 'whose result is kept now');
  service.loseResults();
  t.is(await charged(1, 'k'), '0', 'the first image again');
  t.is((await service.balance()).credits, 10 - 2.25);
  t.deepEqual(await service.stores.ledger.verify(), []);
});
