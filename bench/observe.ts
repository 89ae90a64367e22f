import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLogger } from '../src/ops/log.ts';
import { Metrics } from '../src/ops/metrics.ts';
import { type Recorder, type RequestRecord, requestLog } from '../src/ops/record.ts';
import { RequestTelemetry, stageNames } from '../src/ops/telemetry.ts';
import { openTracing } from '../src/ops/tracing.ts';
import type { BenchCommand, Context, Shared } from './lib/command.ts';
import { measured, type Outcome } from './lib/outcome.ts';

export const command: BenchCommand = {
  name: 'observe',
  title: 'Log, metrics, traces',
  summary:
    'what logging, metrics and traces cost a request: the log line, the metrics, the spans, and a scrape',
  shared: { rounds: 5 },
  options: (command) => command,
  all: {},
};

/** A cut-out with every stage, as the server would report it. */
function aRequest(): RequestRecord {
  const telemetry = new RequestTelemetry();
  telemetry.ended(Object.fromEntries(stageNames.map((stage, index) => [stage, index + 0.5])));
  telemetry.add({ size: 'full', input: '4000x3000 jpeg', inputPixels: 12e6, inputBytes: 3e6, runs: 1 });
  telemetry.add({ result: '4000x3000 png', resultPixels: 12e6, resultBytes: 9e6, type: 'person' });
  telemetry.add({ payment: 'full', charged: '1' });
  return {
    requestId: '2c1f8a5e-7f43-4d6a-9b5e-0f6f3c1f8a5e',
    method: 'POST',
    route: '/v1.0/cutout',
    path: '/v1.0/cutout',
    status: 200,
    outcome: 'ok',
    start: performance.now() - 1200,
    ms: 1200,
    account: 'local',
    attributes: telemetry.attributes,
    spans: telemetry.spans,
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  };
}

const requests = 5000;

/** Microseconds of processor time of this process per request. */
async function each(record: Recorder, end: () => Promise<unknown> = async () => {}): Promise<number> {
  const before = process.cpuUsage();
  for (let n = 0; n < requests; n++) {
    record(aRequest());
    // Spans are sent in separate turns; 2048 may wait.
    if (n % 100 === 99) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await end();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / requests;
}

/** Accepts and discards what is sent. */
async function startSink(): Promise<{ url: string; close: () => void }> {
  const server = createServer((req, res) => req.on('end', () => res.end('{}')).resume());
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

export async function run({ rounds }: Shared, { progress }: Context): Promise<Outcome> {
  const silent = createLogger('silent', { write: () => {} });
  const metrics = new Metrics();
  const line = requestLog(createLogger('info', { write: () => {} }));
  const sink = await startSink();
  const times = { nothing: [], log: [], metrics: [], traces: [], scrape: [] } as Record<string, number[]>;
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}`);
    times['nothing']?.push(await each(() => {}));
    times['log']?.push(await each(line));
    times['metrics']?.push(await each(metrics.record));
    const tracing = openTracing({ url: sink.url, headers: {}, version: '1', logger: silent });
    times['traces']?.push(await each(tracing.record, () => tracing.close()));
    const started = performance.now();
    await metrics.text();
    times['scrape']?.push(1000 * (performance.now() - started));
  }
  sink.close();
  const titles = {
    nothing: 'making the request itself',
    log: 'and its line in the log',
    metrics: 'and its metrics',
    traces: 'and its spans, sent (the collector is in this process)',
    scrape: 'one scrape',
  };
  const figures = Object.entries(titles).map(([name, title]) =>
    measured(`observe.${name}`, title, 'µs', times[name] ?? []),
  );
  return {
    settings: { requests, rounds },
    figures,
    parts: [
      {
        kind: 'table',
        title: 'What a request costs to tell of',
        columns: ['', 'µs'],
        rows: figures.map(({ title, median }) => [title, median]),
        note: `Processor time of this process for each of ${requests} requests with ${stageNames.length} stages, medians.`,
      },
    ],
  };
}
