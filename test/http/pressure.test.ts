import test from 'ava';
import { scene } from '../fixtures/images.ts';
import { errorOf, eventually, form, type Service, startService } from '../fixtures/service.ts';

function hold(service: Service): () => void {
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  return release;
}

/** The image in an answer in JSON. */
const imageIn = (body: Buffer): Buffer =>
  Buffer.from(JSON.parse(body.toString('utf8')).data.result_b64, 'base64');

/** An upload that is never completed: an answer shows that the server did not wait for it. */
const unfinished = (
  { url, key }: Pick<Service, 'url' | 'key'>,
  bytes: Uint8Array = new Uint8Array(1000),
): Promise<Response> =>
  fetch(`${url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': key, 'Content-Type': 'multipart/form-data; boundary=x' },
    body: new ReadableStream({ start: (sender) => sender.enqueue(bytes) }),
    duplex: 'half',
  } as RequestInit);

test('under saturation a request is refused before its body is read', async (t) => {
  // Nothing waits so long here that its time would be over.
  const service = await startService(t, { running: 1, workMs: 38_000, waitMs: 56_000 });
  const release = hold(service);
  const image = form({ image_file: await scene() });
  const accepted = [service.post(image)];
  await eventually(() => service.engine.running === 1);
  accepted.push(service.post(image));
  await eventually(() => service.scheduler.stats.waiting === 1);

  const refused = await unfinished(service);
  t.is(refused.status, 503);
  // Half of what runs, and all that waits.
  t.is(refused.headers.get('retry-after'), '57');
  t.is((await errorOf(t, refused)).code, 'service_unavailable');
  t.is(service.calls(), 2);
  release();
  for (const one of accepted) t.is((await one).status, 200);
});

test('bodies, work and answers are counted and released', async (t) => {
  const service = await startService(t, { memory: { room: 400e6, largestWork: 200e6 } });
  const release = hold(service);
  const image = await scene({ width: 1000, height: 800 });
  const answers = [0, 1, 2].map(() => service.post(form({ image_file: image, size: 'full' })));
  await eventually(() => service.engine.running === 3);
  const { held, working } = service.memory.stats;
  t.is(held, 3 * image.length + 3 * 1.75 * 'full'.length);
  t.true(working > 3 * 4 * 1000 * 800);
  release();
  for (const answer of answers) await (await answer).arrayBuffer();
  await eventually(() => service.memory.stats.held === 0);
  t.is(service.memory.stats.working, 0);

  t.is((await service.post(form({ image_file: Buffer.from('no image') }))).status, 400);
  t.is((await service.post('{"', { 'Content-Type': 'application/json' })).status, 400);
  await eventually(() => service.memory.stats.held === 0);
});

test('an upload without memory is refused while it arrives; a small one is still accepted', async (t) => {
  const service = await startService(t, { memory: { room: 200e6, largestWork: 100e6 } });
  const release = hold(service);
  const large = Buffer.concat([await scene(), Buffer.alloc(19e6)]);
  const first: Promise<Response>[] = [];
  // Of 100 MB for bodies they hold 57; one of 15 without a length would take 30 while it is read.
  for (const running of [1, 2, 3]) {
    first.push(service.post(form({ image_file: large })));
    await eventually(() => service.engine.running === running);
  }
  const part = '--x\r\nContent-Disposition: form-data; name="image_file"\r\n\r\n';
  const refused = await unfinished(service, Buffer.concat([Buffer.from(part), Buffer.alloc(15e6)]));
  t.is(refused.status, 503);
  t.is(refused.headers.get('retry-after'), '2');
  t.regex((await errorOf(t, refused)).detail, /memory/);
  const small = service.post(form({ image_file: await scene() }));
  await eventually(() => service.engine.running === 4);
  release();
  for (const one of [...first, small]) t.is((await one).status, 200);
});

test('work larger than all memory is refused with 400, because it can never be done, and free', async (t) => {
  const service = await startService(t, { credits: 1, memory: { room: 150e6, largestWork: 600e6 } });
  const image = await scene({ width: 4000, height: 3000 });
  const refused = await service.post(form({ image_file: image, size: 'full' }));
  t.is(refused.status, 400);
  t.is(refused.headers.get('retry-after'), null);
  const { code, detail } = await errorOf(t, refused);
  t.is(code, 'resolution_too_high');
  t.regex(detail, /smaller/);
  t.is((await service.balance()).credits, 1);
  t.is((await service.post(form({ image_file: await scene() }))).status, 200);
});

test('health answers at once while all slots are taken', async (t) => {
  const service = await startService(t, { running: 1, workMs: 1000, waitMs: 100 });
  const release = hold(service);
  const image = form({ image_file: await scene() });
  const first = service.post(image);
  await eventually(() => service.engine.running === 1);
  const flood = Array.from({ length: 100 }, () => service.post(image));
  const answer = await fetch(`${service.url}/health/ready`);
  t.is(answer.status, 200);
  for (const one of flood) {
    const refused = await one;
    t.is(refused.status, 503, await refused.text());
  }
  release();
  t.is((await first).status, 200);
});

test('large images leave a slot to previews', async (t) => {
  const service = await startService(t, { running: 2 });
  const release = hold(service);
  const large = form({ image_file: await scene({ width: 4000, height: 3000 }), size: 'full' });
  const requests = [service.post(large), service.post(large)];
  await eventually(() => service.scheduler.stats.waiting === 1);
  await eventually(() => service.engine.running === 1);
  requests.push(service.post(form({ image_file: await scene(), size: 'preview' })));
  await eventually(() => service.engine.running === 2);
  t.is(service.scheduler.stats.waiting, 1);
  release();
  for (const one of requests) t.is((await one).status, 200);
});

test('an upload stays counted when its client leaves while others wait for the work', async (t) => {
  const service = await startService(t, { ttlSeconds: 600 });
  const release = hold(service);
  const large = Buffer.concat([await scene(), Buffer.alloc(10e6)]);
  const small = await scene();
  const headers = { 'Idempotency-Key': 'one-key' };
  const leaving = new AbortController();
  const first = fetch(`${service.url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key, ...headers },
    body: form({ image_file: large }),
    signal: leaving.signal,
  });
  const left = t.throwsAsync(first);
  await eventually(() => service.engine.running === 1);
  // Under the same key any content waits.
  const second = service.post(form({ image_file: small }), headers);
  await eventually(() => service.calls() === 2);
  leaving.abort();
  await left;
  // The log has what ended after everything that ends with it.
  await eventually(() => service.lines().some(({ status }) => status === 499));
  t.true(service.memory.stats.held >= large.length + small.length, `${service.memory.stats.held} bytes`);
  release();
  t.is((await second).status, 200);
  await eventually(() => service.memory.stats.held === 0);
});

for (const accept of ['image/*', 'application/json'])
  test(`a cached result is sent as ${accept} only while there is memory for the answer`, async (t) => {
    const service = await startService(t, { ttlSeconds: 600, memory: { room: 200e6, largestWork: 100e6 } });
    const headers = { 'Idempotency-Key': 'one-key', Accept: accept };
    const first = await service.post(form({ image_file: await scene(), size: 'full' }), headers);
    const body = Buffer.from(await first.arrayBuffer());
    // An answer in JSON is encoded as it is sent: only the image is held.
    const held = accept === 'application/json' ? imageIn(body).length : body.length;
    await eventually(() => service.memory.stats.held === 0);
    const { credits } = await service.balance();
    const asked = 'image_url=http%3A%2F%2Fx.test%2F';
    const repeat = () =>
      service.post(asked, { ...headers, 'Content-Type': 'application/x-www-form-urlencoded' });
    // Of 100 MB for answers others leave what the body of a repeat takes, but not its answer.
    const others = service.memory.reserveUpload('other', 100e6 - held + 1);
    const refused = await repeat();
    t.is(refused.status, 503);
    t.regex((await errorOf(t, refused)).detail, /memory/);
    others?.release();
    const replayed = await repeat();
    t.is(replayed.status, 200);
    t.is(replayed.headers.get('idempotent-replayed'), 'true');
    t.deepEqual(Buffer.from(await replayed.arrayBuffer()), body);
    t.is((await service.balance()).credits, credits);
    t.deepEqual(await service.stores.ledger.verify(), []);
  });
