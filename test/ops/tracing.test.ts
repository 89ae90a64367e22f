import test, { type ExecutionContext } from 'ava';
import { freePort } from '../../bench/lib/freePort.ts';
import { loadConfig } from '../../src/config/readConfig.ts';
import { UserError } from '../../src/errors.ts';
import { createLogger } from '../../src/ops/log.ts';
import { openTracing } from '../../src/ops/tracing.ts';
import { scene } from '../fixtures/images.ts';
import { eventually, form, type Service, startService } from '../fixtures/service.ts';
import { type Collector, type OtlpSpan, startCollector } from '../support/collector.ts';

const log = () => {
  const written: string[] = [];
  return { logger: createLogger('warn', { write: (line: string) => void written.push(line) }), written };
};

/** A service whose traces go to a collector; `flush` sends pending ones. */
async function startTraced(t: ExecutionContext, options: { headers?: Record<string, string> } = {}) {
  const collector = await startCollector(t);
  const { logger, written } = log();
  const { headers = {} } = options;
  const tracing = openTracing({ url: collector.url, headers, version: '1.2.3', logger });
  const service = await startService(t, { recorders: [tracing.record], ttlSeconds: 60 });
  const flush = async (requests: number) => {
    await eventually(() => service.lines().filter(({ path }) => typeof path === 'string').length >= requests);
    await tracing.close();
  };
  return { collector, service, flush, written };
}

const attribute = ({ attributes }: OtlpSpan, key: string): unknown =>
  Object.values(attributes.find((each) => each.key === key)?.value ?? {})[0];

const requestSpans = ({ spans }: Collector) => spans().filter(({ kind }) => kind === 2);

const cut = async (service: Service, headers: Record<string, string> = {}) =>
  service.post(form({ image_file: await scene({ format: 'png' }), size: 'full' }), headers);

test("a request is one span with a child span per stage, under its caller's span", async (t) => {
  const { collector, service, flush } = await startTraced(t, { headers: { Authorization: 'Bearer abc' } });
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const began = Date.now();
  const answer = await cut(service, { traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
  t.is(answer.status, 200);
  await flush(1);
  t.deepEqual(collector.paths(), ['/v1/traces']);
  t.is(collector.headers().authorization, 'Bearer abc');

  const [request] = requestSpans(collector);
  if (!request) return t.fail('no span');
  t.is(request.name, 'POST /v1.0/cutout');
  t.is(request.traceId, traceId);
  t.is(request.parentSpanId, '00f067aa0ba902b7');
  t.is(attribute(request, 'http.route'), '/v1.0/cutout');
  t.is(Number(attribute(request, 'http.response.status_code')), 200);
  t.is(attribute(request, 'cutout.request_id'), answer.headers.get('x-request-id'));
  t.is(attribute(request, 'cutout.account'), service.accountId);
  t.is(attribute(request, 'cutout.payment'), 'full');

  const inside = collector.spans().filter(({ parentSpanId }) => parentSpanId === request.spanId);
  t.deepEqual(
    inside.map(({ name }) => name),
    ['upload', 'admission', 'decode', 'reserve', 'queue', 'prepare', 'infer', 'matte', 'encode', 'settle'],
  );
  const [from, to] = [BigInt(request.startTimeUnixNano), BigInt(request.endTimeUnixNano)];
  t.true(from <= to);
  t.true(Math.abs(Number(from / 1_000_000n) - began) < 5000, 'the time is that of the wall clock');
  // Clocks are read as fractions of milliseconds; a difference of a microsecond is rounding.
  const slack = 1_000_000n;
  for (const span of inside) {
    t.is(span.traceId, traceId);
    t.true(BigInt(span.startTimeUnixNano) >= from - slack, span.name);
    t.true(BigInt(span.endTimeUnixNano) <= to + slack, span.name);
  }
  t.like(
    service.lines().find(({ path }) => path === '/v1.0/cutout'),
    { trace: traceId },
  );
});

test("without a valid caller's context a request starts a trace of its own", async (t) => {
  const { collector, service, flush } = await startTraced(t);
  for (const traceparent of [
    'nonsense',
    '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
    'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x',
  ])
    await fetch(`${service.url}/v1.0/account`, { headers: { 'X-Api-Key': service.key, traceparent } });
  await flush(4);
  const spans = requestSpans(collector);
  t.is(spans.length, 4);
  t.is(new Set(spans.map(({ traceId }) => traceId)).size, 4);
  for (const { parentSpanId } of spans) t.falsy(parentSpanId);
});

test('sampling follows the caller; probes are never traced; internal errors are marked', async (t) => {
  const { collector, service, flush } = await startTraced(t);
  await fetch(`${service.url}/health/live`);
  await fetch(`${service.url}/docs`, {
    headers: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00' },
  });
  service.engine.failure = new Error('bug');
  t.is((await cut(service)).status, 500);
  await flush(3);
  const spans = requestSpans(collector);
  t.deepEqual(
    spans.map(({ name, status }) => [name, status.code]),
    [['POST /v1.0/cutout', 2]],
  );
});

test('no key, image or address is in a trace', async (t) => {
  const { collector, service, flush } = await startTraced(t);
  const image = await scene({ format: 'png' });
  const json = { 'Content-Type': 'application/json' };
  await service.post(form({ image_file: image }), { 'Idempotency-Key': 'order-number-4711' });
  await service.post(JSON.stringify({ image_file_b64: image.toString('base64') }), json);
  for (const image_url of [
    'http://user:pass-word@a.public.test/',
    'http://nowhere.public.test/?signature=very-secret',
  ])
    await service.post(JSON.stringify({ image_url }), json);
  await cut(service, { 'X-Api-Key': 'wrong-key-of-somebody' });
  await fetch(`${service.url}/v1.0/account?api_key=${service.key}`);
  await flush(6);
  t.is(requestSpans(collector).length, 6);
  const sent = collector.text();
  for (const secret of [
    service.key,
    'order-number-4711',
    'pass-word',
    'very-secret',
    'public.test',
    'wrong-key-of-somebody',
    image.toString('base64').slice(40, 64),
  ])
    t.false(sent.includes(secret), secret);
});

// Serial: the library reports all of its errors to the last listener.
test.serial('a refusing collector is reported in the log; an unreachable one delays nothing', async (t) => {
  const { url } = await startCollector(t, 400);
  const { logger, written } = log();
  const tracing = openTracing({ url, headers: { 'X-Key': 'key-of-collector' }, version: '1', logger });
  const service = await startService(t, { recorders: [tracing.record] });
  t.is((await cut(service)).status, 200);
  await eventually(() => written.length > 0);
  t.regex(written.join(''), /"msg":"tracing"/);
  t.false(written.join('').includes('key-of-collector'));
  await tracing.close();

  const gone = openTracing({
    url: `http://127.0.0.1:${await freePort()}`,
    headers: {},
    version: '1',
    logger,
  });
  const other = await startService(t, { recorders: [gone.record] });
  t.is((await cut(other)).status, 200);
  await eventually(() => other.lines().length === 1);
  const started = performance.now();
  await t.throwsAsync(gone.close());
  t.true(performance.now() - started < 10_000);
});

test('an address with a key is refused, headers are validated', (t) => {
  for (const env of [
    { CUTOUT_OTLP_URL: 'http://user:key@collector:4318' },
    { CUTOUT_OTLP_URL: 'collector:4318' },
    { CUTOUT_OTLP_HEADERS: 'no header' },
  ])
    t.throws(() => loadConfig(env), { instanceOf: UserError, message: /CUTOUT_OTLP/ });
  const { otlpHeaders } = loadConfig({
    CUTOUT_OTLP_HEADERS: 'Authorization=Bearer a=b, X-Scope=one',
  }).observe;
  t.deepEqual(otlpHeaders, { Authorization: 'Bearer a=b', 'X-Scope': 'one' });
});
