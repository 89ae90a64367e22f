import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { registerCollected, type Sources } from './collectedMetrics.ts';
import type { Recorder, RequestRecord } from './record.ts';
import type { RequestAttributes } from './telemetry.ts';

/** Attributes of an installation that do not change while it runs; one label each. */
const installLabels = [
  'version',
  'node',
  'network',
  'device',
  'precision',
  'profile',
  'onnxruntime',
] as const;

/** Seconds: from the time of a repeated request to the longest time a client waits. */
const requestSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 8, 13, 30, 60, 120];
const stageSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128];
/** Includes the sizes of the contract. */
const pixels = [0.25e6, 0.5e6, 1e6, 1.5e6, 2e6, 4e6, 8e6, 12e6, 16e6, 25e6, 36e6, 50e6];

/** Makes metrics by their names without `cutout_`. */
const makerOf = (registers: Registry[]) => ({
  counter: <L extends string = never>(name: string, help: string, ...labelNames: L[]) =>
    new Counter({ name: `cutout_${name}`, help, labelNames, registers }),
  gauge: <L extends string = never>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge({ name: `cutout_${name}`, help, labelNames, registers }),
  histogram: <L extends string = never>(name: string, help: string, buckets: number[], ...labelNames: L[]) =>
    new Histogram({ name: `cutout_${name}`, help, buckets, labelNames, registers }),
});

type Maker = ReturnType<typeof makerOf>;

const ofRequests = ({ counter, histogram }: Maker) => ({
  requests: counter(
    'requests_total',
    'Completed requests. size: as requested, or none.',
    ...(['route', 'method', 'status', 'size'] as const),
  ),
  errors: counter('errors_total', 'Answers with an error, by its code.', 'code'),
  refusals: counter('refusals_total', 'Requests refused for now, by reason.', 'reason'),
  requestSeconds: histogram(
    'request_duration_seconds',
    'Duration from the headers of a request to the end of its answer.',
    requestSeconds,
    'route',
  ),
  stageSeconds: histogram(
    'stage_duration_seconds',
    'Duration of the stages of requests, named as in Server-Timing.',
    stageSeconds,
    'stage',
  ),
  replays: counter('replays_total', 'Requests answered with the result of an earlier one.'),
});

const ofImages = ({ counter, histogram }: Maker) => ({
  inputPixels: histogram('input_pixels', 'Pixels of received images.', pixels),
  resultPixels: histogram('result_pixels', 'Pixels of results.', pixels),
  inputBytes: counter('input_bytes_total', 'Bytes of received images.'),
  resultBytes: counter('result_bytes_total', 'Bytes of results.'),
  runs: counter('network_runs_total', 'Network runs, each on one image.'),
  second: counter(
    'second_looks_total',
    'Images that left the network in doubt and were given to the second one: its answer was taken, or was no surer.',
    'answer',
  ),
  uncertainty: histogram(
    'uncertainty_score',
    'Chances that a person has to look at a result, as in X-Uncertainty-Score.',
    [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  ),
  guided: counter('guided_requests_total', 'Images with a chosen subject, by how it was chosen.', 'by'),
  encodings: counter('encodings_total', 'Images encoded to find the subject that points or a box show.'),
  types: counter('subjects_total', 'Detected subjects, by kind.', 'type'),
});

const ofCredits = ({ counter }: Maker) => ({
  charges: counter('charges_total', 'Charged results, by means of payment.', 'payment'),
  credits: counter('charged_credits_total', 'Charged credits, by means of payment.', 'payment'),
  unclaimed: counter(
    'unclaimed_purchases_total',
    'Purchases that were paid after their account was deleted.',
  ),
});

const ofNetwork = ({ counter, gauge }: Maker) => ({
  loads: counter('network_loads_total', 'Number of times the network was loaded.'),
  unloads: counter('network_unloads_total', 'Number of times the idle network was unloaded.'),
  loadSeconds: gauge('network_load_seconds', 'Duration of the last load and warm-up of the network.'),
  info: gauge('info', 'Always 1; the labels have version, network and precision.', ...installLabels),
});

/** What is counted as things happen; what is read at each scrape: collectedMetrics.ts. */
function countedMetrics(registers: Registry[]) {
  const maker = makerOf(registers);
  return { ...ofRequests(maker), ...ofImages(maker), ...ofCredits(maker), ...ofNetwork(maker) };
}

/**
 * Prometheus metrics (docs/operations.md), in a registry of their own, so that several services in one
 * process do not mix. Labels have few and fixed values: route patterns, never paths; no accounts, no keys.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #sources: Partial<Sources> = {};
  readonly #counted = countedMetrics([this.#registry]);

  constructor() {
    registerCollected(this.#registry, this.#sources);
    collectDefaultMetrics({ register: this.#registry });
    // Gauges named like counters; the same numbers exist by type.
    for (const name of ['handles', 'requests', 'resources'])
      this.#registry.removeSingleMetric(`nodejs_active_${name}_total`);
  }

  /** Adds a part of the service to what is read at each scrape. */
  watch(sources: Partial<Sources>): void {
    Object.assign(this.#sources, sources);
  }

  /** Sets the labels of `cutout_info`. */
  install(attributes: Readonly<Record<(typeof installLabels)[number], string>>): void {
    this.#counted.info.set(attributes, 1);
  }

  /** The network was loaded. `ms`: milliseconds to open it and for its first run. */
  networkLoaded(ms: number): void {
    this.#counted.loads.inc();
    this.#counted.loadSeconds.set(ms / 1000);
  }

  networkUnloaded(): void {
    this.#counted.unloads.inc();
  }

  /** A result was charged; `credits` may be 0. */
  charged(payment: string, credits: number): void {
    this.#counted.charges.inc({ payment });
    this.#counted.credits.inc({ payment }, credits);
  }

  readonly record: Recorder = (request) => {
    const { attributes, route, method, status } = request;
    const { requests, requestSeconds, errors, refusals, stageSeconds, unclaimed } = this.#counted;
    requests.inc({ route, method: methodLabel(method), status, size: attributes.size ?? 'none' });
    requestSeconds.observe({ route }, request.ms / 1000);
    if (attributes.error !== undefined) errors.inc({ code: attributes.error });
    if (attributes.reason !== undefined) refusals.inc({ reason: attributes.reason });
    if (attributes.purchase === 'unclaimed') unclaimed.inc();
    for (const { stage, ms } of request.spans) stageSeconds.observe({ stage }, ms / 1000);
    this.#recordImages(request);
  };

  #recordImages({ attributes }: RequestRecord): void {
    const { inputPixels, inputBytes, runs, second, guided, encodings, types, replays } = this.#counted;
    if (attributes.inputPixels !== undefined) inputPixels.observe(attributes.inputPixels);
    if (attributes.inputBytes !== undefined) inputBytes.inc(attributes.inputBytes);
    // Each result counts once, with the request that made it.
    if (!attributes.shared) this.#recordResult(attributes);
    if (attributes.runs !== undefined) runs.inc(attributes.runs);
    if (attributes.second !== undefined && attributes.second !== 'none')
      second.inc({ answer: attributes.second });
    if (attributes.guidance !== undefined) guided.inc({ by: attributes.guidance });
    if (attributes.encodings !== undefined) encodings.inc(attributes.encodings);
    if (attributes.type !== undefined) types.inc({ type: attributes.type });
    if (attributes.replayed) replays.inc();
  }

  #recordResult({ resultPixels, resultBytes, uncertainty }: RequestAttributes): void {
    if (uncertainty !== undefined) this.#counted.uncertainty.observe(uncertainty);
    if (resultPixels !== undefined) this.#counted.resultPixels.observe(resultPixels);
    if (resultBytes !== undefined) this.#counted.resultBytes.inc(resultBytes);
  }

  readonly contentType: string = this.#registry.contentType;

  /** Returns all metrics in Prometheus' text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }
}

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'OPTIONS']);
/** A client may send any method. */
const methodLabel = (method: string) => (methods.has(method) ? method : 'other');
