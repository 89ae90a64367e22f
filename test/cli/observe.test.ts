import test from 'ava';
import { modelsFolder, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { eventually, form } from '../fixtures/service.ts';
import { startCollector } from '../support/collector.ts';
import { promtool, promtoolMissing, samplesOf } from '../support/prometheus.ts';

test('a running server reports its metrics and, until it stops, its traces', async (t) => {
  const folder = temporaryFolder(t);
  const collector = await startCollector(t);
  const key = 'key-of-this-test-0123';
  const server = await startServing(t, {
    CUTOUT_DATA_DIR: folder,
    CUTOUT_MODELS_DIR: modelsFolder(temporaryFolder(t)),
    CUTOUT_SUBJECT_TYPES: 'off',
    CUTOUT_API_KEY: key,
    CUTOUT_METRICS_PORT: '0',
    CUTOUT_OTLP_URL: collector.url,
  });
  const metricsUrl = /^Metrics\s+(http:\S+)$/m.exec(server.stderr())?.[1] ?? '';
  t.regex(metricsUrl, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
  const answer = await fetch(`${server.url}/v1.0/removebg`, {
    method: 'POST',
    headers: { 'X-Api-Key': key },
    body: form({ image_file: await scene({ format: 'png' }), size: 'full' }),
  });
  t.is(answer.status, 200);
  await answer.arrayBuffer();
  await eventually(() => server.stdout().includes('"path":"/v1.0/removebg"'));

  const text = await (await fetch(metricsUrl)).text();
  const seen = samplesOf(text);
  const requests = 'cutout_requests_total{route="/v1.0/removebg",method="POST",status="200",size="full"}';
  t.is(seen.get(requests), 1);
  t.is(seen.get('cutout_ready'), 1);
  t.is(seen.get('cutout_network_loads_total'), 1);
  t.is(seen.get('cutout_charges_total{payment="full"}'), 1);
  // The first grant of the local account, less the image.
  const granted = seen.get('cutout_booked_credits_total{kind="grant",direction="in"}') ?? 0;
  t.true(granted > 1);
  t.is(seen.get('cutout_balance_credits'), granted - 1);
  t.is(seen.get('cutout_network_unloads_total'), 0);
  t.true((seen.get('cutout_engine_jobs_total{outcome="done"}') ?? 0) >= 2);
  t.true((seen.get('cutout_memory_room_bytes') ?? 0) > 64e6);
  t.is(seen.get('cutout_admission_wait_seconds'), 0);
  t.true(text.includes('network="u2netp"'));
  if (promtoolMissing) sayLeftOut(t, `${promtoolMissing}: metrics are read by this test alone`);
  else t.is(promtool(['check', 'metrics'], text).said, '');

  server.child.kill('SIGTERM');
  t.is((await server.ended).code, 0);
  const names = collector.spans().map(({ name }) => name);
  t.true(names.includes('POST /v1.0/removebg'));
  t.true(names.includes('infer'));
  t.false(collector.text().includes(key));
});
