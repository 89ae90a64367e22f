import { Metrics } from '../../src/ops/metrics.ts';
import { RequestTelemetry, stageNames } from '../../src/ops/telemetry.ts';

/** Metrics of which each has a value. */
export function everyMetric(): Metrics {
  const metrics = new Metrics();
  metrics.watch({
    ready: () => true,
    admission: () => ({ running: 1, waiting: 2, waitingMs: 3000, serviceRate: 0.5 }),
    memory: () => ({ room: 4e9, held: 1e6, working: 2e6 }),
    engine: () => ({
      queued: 0,
      running: 1,
      done: 5,
      failed: 1,
      cancelled: 2,
      keptBytes: 6e8,
      opening: [],
      devices: [
        {
          id: 0,
          losses: 0,
          batches: [0, 3, 2],
          waits: [
            [0.5, 1],
            [1, 2],
            [512, 0],
            [1024, 3],
            [Number.POSITIVE_INFINITY, 1],
          ],
          waitedMs: 2500,
          memoryBytes: 3e9,
          memoryLimitBytes: 20e9,
        },
        {
          id: 1,
          lost: 'The GPU has stopped working.',
          losses: 2,
          batches: [0, 1],
          waits: [],
          waitedMs: 0,
        },
      ],
    }),
    results: () => ({ results: 1, bytes: 2, inFlight: 0 }),
    reservations: async () => 3,
    balances: async () => 12.5,
    booked: async () => [{ kind: 'grant', direction: 'in', credits: 50 }],
  });
  metrics.install({
    version: '1',
    node: '20',
    network: 'isnet',
    device: 'cpu',
    precision: 'int8',
    profile: 'balanced',
    onnxruntime: '1',
  });
  metrics.networkLoaded(1500);
  metrics.networkUnloaded();
  metrics.networkUnloaded();
  const telemetry = new RequestTelemetry();
  telemetry.ended(Object.fromEntries(stageNames.map((stage) => [stage, 1])));
  telemetry.add({
    size: 'full',
    error: 'rate_limit_exceeded',
    reason: 'rate',
  });
  metrics.charged('full', 1);
  telemetry.add({ inputPixels: 1, inputBytes: 1, resultPixels: 1, resultBytes: 1, runs: 1, type: 'car' });
  metrics.record({
    requestId: '',
    method: 'POST',
    route: '/v1.0/cutout',
    path: '/v1.0/cutout',
    status: 200,
    outcome: 'ok',
    start: 0,
    ms: 12,
    account: 'local',
    attributes: telemetry.attributes,
    spans: telemetry.spans,
    traceparent: '',
  });
  return metrics;
}
