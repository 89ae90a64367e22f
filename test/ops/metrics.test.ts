import test, { type ExecutionContext } from 'ava';
import { loadConfig } from '../../src/config/readConfig.ts';
import { UserError } from '../../src/errors.ts';
import { Health } from '../../src/ops/health.ts';
import { createLogger } from '../../src/ops/log.ts';
import { Metrics } from '../../src/ops/metrics.ts';
import { openObservation } from '../../src/server/openObservation.ts';
import { scene } from '../fixtures/images.ts';
import { unless } from '../fixtures/leftOut.ts';
import { random } from '../fixtures/random.ts';
import { eventually, form, type Service, type ServiceOptions, startService } from '../fixtures/service.ts';
import { attemptsOf } from '../support/attempts.ts';
import { everyMetric } from '../support/metrics.ts';
import { promtool, promtoolMissing, samplesOf } from '../support/prometheus.ts';

async function startMeasured(t: ExecutionContext, options: ServiceOptions = {}) {
  const service = await startService(t, { metrics: true, ...options });
  return { service, samples: async () => samplesOf(await service.metrics.text()) };
}

/** The log line of a request is written after its metrics. */
const worked = (service: Service, requests: number) =>
  eventually(() => service.lines().filter(({ path }) => typeof path === 'string').length >= requests);

test('requests are counted by route, status and size; their stages and images are measured', async (t) => {
  const { service, samples } = await startMeasured(t, { ttlSeconds: 60, credits: 1, freePreviews: 1 });
  const photo = await scene({ width: 600, height: 500, format: 'png' });
  const image = { image_file: photo };
  for (const [fields, status] of [
    [{ ...image }, 200],
    [{ ...image, size: 'full' }, 200],
    // Cached: there is no second charge.
    [{ ...image, size: 'full' }, 200],
    [{ ...image, size: 'hd' }, 402],
    [{ ...image, size: 'huge' }, 400],
  ] as const)
    t.is((await service.post(form(fields))).status, status);
  await fetch(`${service.url}/nowhere`);
  await worked(service, 6);

  const seen = await samples();
  const requests = (status: number, size: string) =>
    seen.get(`cutout_requests_total{route="/v1.0/cutout",method="POST",status="${status}",size="${size}"}`);
  t.is(requests(200, 'preview'), 1);
  t.is(requests(200, 'full'), 2);
  t.is(requests(402, 'hd'), 1);
  t.is(requests(400, 'none'), 1, 'what is no size is no label');
  t.is(seen.get('cutout_requests_total{route="none",method="GET",status="404",size="none"}'), 1);
  t.is(seen.get('cutout_request_duration_seconds_count{route="/v1.0/cutout"}'), 5);
  t.is(seen.get('cutout_errors_total{code="insufficient_credits"}'), 1);
  t.is(seen.get('cutout_errors_total{code="invalid_size"}'), 1);
  t.is(seen.get('cutout_refusals_total{reason="credits"}'), 1);
  t.is(seen.get('cutout_replays_total'), 1);
  t.is(seen.get('cutout_charges_total{payment="free"}'), 1);
  t.is(seen.get('cutout_charges_total{payment="full"}'), 1);
  t.is(seen.get('cutout_charged_credits_total{payment="full"}'), 1);
  t.is(seen.get('cutout_charged_credits_total{payment="free"}'), 0);
  // The one that was refused for lack of credits had its header read.
  t.is(seen.get('cutout_input_pixels_count'), 3);
  t.is(seen.get('cutout_input_pixels_sum'), 3 * 600 * 500);
  t.is(seen.get('cutout_input_bytes_total'), 3 * photo.length);
  t.is(seen.get('cutout_result_pixels_count'), 2);
  t.is(seen.get('cutout_network_runs_total'), 2);
  for (const stage of [
    'upload',
    'reserve',
    'admission',
    'decode',
    'queue',
    'infer',
    'matte',
    'encode',
    'settle',
  ])
    t.true((seen.get(`cutout_stage_duration_seconds_count{stage="${stage}"}`) ?? 0) >= 2, stage);
  t.is(seen.get('cutout_ready'), 1);
  t.is(seen.get('cutout_admission_running'), 0);
  t.is(seen.get('cutout_kept_results'), 2);
  t.true((seen.get('cutout_kept_results_bytes') ?? 0) > 500);
  t.is(seen.get('cutout_open_reservations'), 0);
  t.true((seen.get('process_resident_memory_bytes') ?? 0) > 1e6);
});

test('refusals are counted by reason', async (t) => {
  const health = new Health();
  health.ready();
  const { service, samples } = await startMeasured(t, {
    running: 1,
    rate: 1,
    attempts: 1,
    health,
  });
  const photo = await scene({ format: 'png' });
  const send = (headers = {}) => service.post(form({ image_file: photo }), headers);
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  const first = send();
  await eventually(() => service.engine.running === 1);
  const queued = await samples();
  t.is(queued.get('cutout_admission_running'), 1);
  t.is(queued.get('cutout_open_reservations'), 1);
  t.is((await send()).status, 429, 'all megapixels of the minute are taken');
  release();
  t.is((await first).status, 200);
  for (const _ of [1, 2]) await send({ 'X-Api-Key': 'wrong-key-0123456789' });
  health.stopping();
  await worked(service, 4);
  const seen = await samples();
  t.is(seen.get('cutout_refusals_total{reason="rate"}'), 1);
  t.is(seen.get('cutout_refusals_total{reason="attempts"}'), 1);
  t.is(seen.get('cutout_ready'), 0);
});

test('a full queue has its own reason', async (t) => {
  const { service, samples } = await startMeasured(t, { running: 1, waitMs: 0, workMs: 1000 });
  const send = async () => service.post(form({ image_file: await scene({ format: 'png' }) }));
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  const first = send();
  await eventually(() => service.engine.running === 1);
  t.is((await send()).status, 503);
  release();
  await first;
  await worked(service, 2);
  t.is((await samples()).get('cutout_refusals_total{reason="queue"}'), 1);
});

test('clients cannot create labels', async (t) => {
  const { service, samples } = await startMeasured(t, { adminToken: 'operator-token-of-this-test' });
  const count = async () => (await samples()).size;
  const round = async (word: string) => {
    await fetch(`${service.url}/${word}`);
    await fetch(`${service.url}/assets/${word}`);
    await fetch(`${service.url}/admin/v1/accounts/${word}?${word}`);
    await fetch(`${service.url}/v1.0/cutout`, { method: 'PROPFIND' });
    await fetch(`${service.url}/v1.0/cutout`, { method: 'MKCOL' });
    await fetch(`${service.url}/v1.0/cutout`, { method: 'OPTIONS', headers: { Origin: word } });
    await service.post(JSON.stringify({ size: word, image_file_b64: word }), {
      'Content-Type': 'application/json',
      'X-Api-Key': word,
      traceparent: word,
    });
    await service.post(JSON.stringify({ size: word, image_file_b64: 'AAAA' }), {
      'Content-Type': 'application/json',
      traceparent: word,
    });
  };
  await round('first');
  const before = await count();
  const dice = random(7);
  for (let n = 0; n < 20; n++) await round(`w${Math.floor(dice() * 1e9)}`);
  await worked(service, 8 * 21);
  // Only process metrics differ between scrapes: kinds of garbage collections and of open resources.
  const ours = [...(await samples()).keys()].filter((name) => name.startsWith('cutout_'));
  t.true((await count()) <= before + 30, `${before} → ${await count()}`);
  t.false(ours.some((name) => /w\d{3,}|PROPFIND|MKCOL/.test(name)));
});

test("on the service's port metrics require the token", async (t) => {
  const closed = await startMeasured(t);
  t.is((await fetch(`${closed.service.url}/metrics`)).status, 404);

  const token = 'metrics-token-of-this-test';
  const { service } = await startMeasured(t, { metricsToken: token });
  const ask = (headers: Record<string, string> = {}) => fetch(`${service.url}/metrics`, { headers });
  t.is((await ask()).status, 403);
  t.is((await ask({ Authorization: 'Bearer something-else-entirely' })).status, 403);
  t.is((await ask({ 'X-Api-Key': service.key })).status, 403);
  const answer = await ask({ Authorization: `Bearer ${token}` });
  t.is(answer.status, 200);
  t.regex(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  t.regex(await answer.text(), /^cutout_ready 1$/m);
  t.false(service.text().includes(token));
});

const silent = createLogger('silent', { write: () => {} });
const attempts = attemptsOf(3);

test('a separate port is opened if configured, on loopback', async (t) => {
  const off = await openObservation(loadConfig({}).observe, { logger: silent, attempts });
  t.is(off.metrics, undefined);
  t.is(off.metricsUrl, undefined);
  t.deepEqual(off.recorders, []);
  await off.close();

  const open = await openObservation(loadConfig({ CUTOUT_METRICS_PORT: '0' }).observe, {
    logger: silent,
    attempts,
  });
  t.teardown(() => open.close());
  const url = open.metricsUrl ?? '';
  t.regex(url, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
  const answer = await fetch(url);
  t.is(answer.status, 200);
  t.regex(await answer.text(), /^# TYPE cutout_requests_total counter$/m);
  t.is((await fetch(url.replace('/metrics', '/'))).status, 404);

  const taken = { CUTOUT_METRICS_PORT: new URL(url).port };
  const error = await t.throwsAsync(
    openObservation(loadConfig(taken).observe, { logger: silent, attempts }),
    {
      instanceOf: UserError,
    },
  );
  t.regex(error?.message ?? '', /CUTOUT_METRICS_PORT/);
});

test('a token applies to the separate port as well', async (t) => {
  const token = 'metrics-token-of-this-test';
  const env = { CUTOUT_METRICS_PORT: '0', CUTOUT_METRICS_TOKEN: token };
  const open = await openObservation(loadConfig(env).observe, { logger: silent, attempts });
  t.teardown(() => open.close());
  t.is((await fetch(open.metricsUrl ?? '')).status, 403);
  const headers = { Authorization: `Bearer ${token}` };
  t.is((await fetch(open.metricsUrl ?? '', { headers })).status, 200);

  const guess = () =>
    fetch(open.metricsUrl ?? '', { headers: { Authorization: 'Bearer a-token-that-is-guessed' } });
  for (let i = 0; i < 3; i++) t.is((await guess()).status, 403);
  const slowed = await guess();
  t.is(slowed.status, 429);
  t.true(Number(slowed.headers.get('retry-after')) > 0);
});

test('sources are read at a scrape; a missing source has no value', async (t) => {
  const seen = samplesOf(await everyMetric().text());
  t.is(seen.get('cutout_engine_jobs_total{outcome="done"}'), 5);
  t.is(seen.get('cutout_engine_batches_total{device="0",images="2"}'), 2);
  const wait = (le: string) => seen.get(`cutout_engine_batch_wait_seconds_bucket{device="0",le="${le}"}`);
  t.deepEqual(['0.0005', '0.001', '0.512', '1.024', '+Inf'].map(wait), [1, 3, 3, 6, 7]);
  t.is(seen.get('cutout_engine_batch_wait_seconds_sum{device="0"}'), 2.5);
  t.is(seen.get('cutout_engine_batch_wait_seconds_count{device="0"}'), 7);
  t.is(seen.get('cutout_device_up{device="0"}'), 1);
  t.is(seen.get('cutout_device_up{device="1"}'), 0);
  t.is(seen.get('cutout_device_losses_total{device="1"}'), 2);
  t.is(seen.get('cutout_device_memory_bytes{device="0"}'), 3e9);
  t.is(seen.get('cutout_device_memory_limit_bytes{device="0"}'), 20e9);
  t.is(seen.get('cutout_open_reservations'), 3);
  t.is(seen.get('cutout_admission_wait_seconds'), 6);
  t.is(seen.get('cutout_engine_kept_bytes'), 6e8);
  t.is(seen.get('cutout_memory_room_bytes'), 4e9);
  t.is(seen.get('cutout_network_loads_total'), 1);
  t.is(seen.get('cutout_network_load_seconds'), 1.5);
  t.is(seen.get('cutout_network_unloads_total'), 2);
  t.is(seen.get('cutout_balance_credits'), 12.5);
  t.is(seen.get('cutout_booked_credits_total{kind="grant",direction="in"}'), 50);
  t.true([...seen.keys()].some((name) => /^cutout_info\{.*precision="int8"/.test(name)));
  const empty = samplesOf(await new Metrics().text());
  t.false(empty.has('cutout_admission_running'));
  t.false(empty.has('cutout_open_reservations'));
});

test('a source that fails or hangs loses only its own value', async (t) => {
  for (const broken of [() => Promise.reject(new Error('no database')), () => new Promise<never>(() => {})]) {
    const metrics = everyMetric();
    metrics.watch({ reservations: broken, booked: broken });
    const seen = samplesOf(await metrics.text());
    t.false(seen.has('cutout_open_reservations'));
    t.false([...seen.keys()].some((name) => name.startsWith('cutout_booked_credits_total')));
    t.is(seen.get('cutout_admission_waiting'), 2);
  }
});

unless(promtoolMissing)('promtool finds nothing to complain about', async (t) => {
  const { status, said } = promtool(['check', 'metrics'], await everyMetric().text());
  t.is(status, 0, said);
  t.is(said.trim(), '');
});
