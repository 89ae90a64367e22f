import test from 'ava';
import { scene } from '../fixtures/images.ts';
import { eventually, form, type Service, startService } from '../fixtures/service.ts';

const lineOf = async (service: Service, index: number): Promise<Record<string, unknown>> => {
  const lines = () => service.lines().filter(({ path }) => typeof path === 'string');
  await eventually(() => lines().length > index);
  return lines()[index] ?? {};
};

test('one line per request: account, operation, sizes, stages, outcome and cost', async (t) => {
  const service = await startService(t, { ttlSeconds: 60 });
  const image = await scene({ width: 300, height: 200, format: 'png' });
  const answer = await service.post(form({ image_file: image, size: 'full' }));
  const bytes = (await answer.arrayBuffer()).byteLength;
  const { time, ms, stages, ...line } = await lineOf(service, 0);
  t.deepEqual(line, {
    level: 30,
    request: answer.headers.get('x-request-id'),
    method: 'POST',
    path: '/v1.0/cutout',
    status: 200,
    outcome: 'ok',
    account: service.accountId,
    size: 'full',
    input: '300x200 png',
    inputPixels: 60_000,
    inputBytes: image.length,
    result: '300x200 png',
    resultPixels: 60_000,
    resultBytes: bytes,
    runs: 1,
    second: 'none',
    uncertainty: 0.1,
    payment: 'full',
    charged: '1',
  });
  t.false(Number.isNaN(Date.parse(String(time))));
  const took = stages as Record<string, number>;
  t.deepEqual(Object.keys(took), [
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
  const sum = Object.values(took).reduce((all, one) => all + one, 0);
  t.true(sum > 0 && sum <= Number(ms) + 1, `${sum} of ${ms} ms`);

  await service.post(form({ image_file: image, size: 'full' }));
  const replay = await lineOf(service, 1);
  t.like(replay, { outcome: 'ok', replayed: true, charged: '0' });
  t.is(replay['payment'], undefined);
});

test('a request that waited for the work of another has the size of its own answer and is marked', async (t) => {
  const service = await startService(t, { ttlSeconds: 60, metrics: true });
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  const call = async () =>
    service.post(form({ image_file: await scene({ width: 300, height: 200 }), size: 'full', format: 'jpg' }));
  const answers = [call()];
  await eventually(() => service.engine.running === 1);
  answers.push(call(), call());
  await eventually(() => service.calls() === 3);
  release();
  const bytes = await Promise.all(
    answers.map(async (answer) => (await (await answer).arrayBuffer()).byteLength),
  );
  const lines = await Promise.all([0, 1, 2].map((index) => lineOf(service, index)));
  const own = { status: 200, result: '300x200 jpg', resultPixels: 60_000, resultBytes: bytes[0] };
  for (const line of lines) t.like(line, own);
  const makers = lines.filter(({ shared }) => shared === undefined);
  t.deepEqual(
    makers.map(({ input, runs }) => [input, runs]),
    [['300x200 jpeg', 1]],
  );
  for (const line of lines.filter(({ shared }) => shared === true))
    t.deepEqual([line['input'], line['runs'], line['type']], [undefined, undefined, undefined]);
  t.regex(await service.metrics.text(), /^cutout_result_pixels_count 1$/m, 'the work counts once');
});

test('failures are logged with their reason', async (t) => {
  const service = await startService(t, { credits: 0, freePreviews: 0 });
  const image = await scene({ format: 'png' });
  await service.post(form({ image_file: image }));
  t.like(await lineOf(service, 0), { status: 402, outcome: 'refused', reason: 'credits' });
  await service.post(form({ image_file: image, size: 'huge' }));
  t.like(await lineOf(service, 1), { status: 400, outcome: 'invalid', error: 'invalid_size' });
  await fetch(`${service.url}/${'x'.repeat(5000)}`);
  const { path, ...line } = await lineOf(service, 2);
  t.like(line, { status: 404, outcome: 'invalid' });
  t.is(String(path).length, 201, 'a path of any length is cut');
});

test('a client that disconnected is distinguished from one that was answered', async (t) => {
  const service = await startService(t);
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  const leaving = new AbortController();
  const body = form({ image_file: await scene({ format: 'png' }) });
  const gone = fetch(`${service.url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body,
    signal: leaving.signal,
  });
  gone.catch(() => {});
  await eventually(() => service.engine.running === 1);
  leaving.abort();
  t.like(await lineOf(service, 0), { status: 499, outcome: 'gone', error: 'client_closed' });
  release();
});

test('probes are logged at debug level only', async (t) => {
  const service = await startService(t);
  await fetch(`${service.url}/health/live`);
  t.like(await lineOf(service, 0), { level: 20, path: '/health/live' });
});
