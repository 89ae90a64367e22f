import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type DeviceSource, type OpeningSource, registerDevices, registerOpening } from './engineMetrics.ts';
import type { Recorder, RequestRecord } from './record.ts';
import type { RequestAttributes } from './telemetry.ts';

/** Attributes of an installation that do not change while it runs; one label each. */
interface Install {
  readonly version: string;
  readonly node: string;
  readonly network: string;
  readonly device: string;
  readonly precision: string;
  readonly profile: string;
  readonly onnxruntime: string;
}

/** Credits that were added to or taken from accounts other than by use. */
interface BookedCredits {
  readonly kind: string;
  readonly direction: 'in' | 'out';
  readonly credits: number;
}

/** Values read at every scrape. Parts that are opened later, or not at all, are added by `watch`. */
interface Sources {
  /** Dropped log lines since the start. */
  readonly droppedLines: () => number;
  readonly opening: () => readonly OpeningSource[];
  readonly ready: () => boolean;
  readonly admission: () => {
    readonly running: number;
    readonly waiting: number;
    readonly waitingMs: number;
    readonly serviceRate: number;
  };
  readonly memory: () => { readonly room: number; readonly held: number; readonly working: number };
  /** Downloads in progress. */
  readonly downloads: () => number;
  readonly engine: () => {
    readonly queued: number;
    readonly running: number;
    readonly done: number;
    readonly failed: number;
    readonly cancelled: number;
    readonly keptBytes: number;
    readonly devices: readonly DeviceSource[];
  };
  readonly results: () => { readonly results: number; readonly bytes: number; readonly inFlight: number };
  readonly reservations: () => number | Promise<number>;
  /** Returns the sum of all balances in credits, not quarters. */
  readonly balances: () => Promise<number>;
  readonly booked: () => Promise<readonly BookedCredits[]>;
}

/** Seconds: from the time of a repeated request to the longest time a client waits. */
const requestSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 8, 13, 30, 60, 120];
const stageSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128];
/** Includes the sizes of the contract. */
const pixels = [0.25e6, 0.5e6, 1e6, 1.5e6, 2e6, 4e6, 8e6, 12e6, 16e6, 25e6, 36e6, 50e6];

/** Creates metrics that are counted as things happen, all named `cutout_…`. */
class Instruments {
  readonly #registers: Registry[];

  constructor(registry: Registry) {
    this.#registers = [registry];
  }

  counter<L extends string = never>(name: string, help: string, labels: readonly L[] = []): Counter<L> {
    return new Counter({
      name: `cutout_${name}`,
      help,
      labelNames: [...labels],
      registers: this.#registers,
    });
  }

  histogram<L extends string = never>(
    name: string,
    help: string,
    buckets: number[],
    labels: readonly L[] = [],
  ): Histogram<L> {
    return new Histogram({
      name: `cutout_${name}`,
      help,
      buckets,
      labelNames: [...labels],
      registers: this.#registers,
    });
  }

  gauge<L extends string = never>(name: string, help: string, labels: readonly L[] = []): Gauge<L> {
    return new Gauge({ name: `cutout_${name}`, help, labelNames: [...labels], registers: this.#registers });
  }
}

const requestMetrics = (instruments: Instruments) => ({
  requests: instruments.counter('requests_total', 'Completed requests. size: as requested, or none.', [
    'route',
    'method',
    'status',
    'size',
  ]),
  errors: instruments.counter('errors_total', 'Answers with an error, by its code.', ['code']),
  refusals: instruments.counter('refusals_total', 'Requests refused for now, by reason.', ['reason']),
  requestSeconds: instruments.histogram(
    'request_duration_seconds',
    'Duration from the headers of a request to the end of its answer.',
    requestSeconds,
    ['route'],
  ),
  stageSeconds: instruments.histogram(
    'stage_duration_seconds',
    'Duration of the stages of requests, named as in Server-Timing.',
    stageSeconds,
    ['stage'],
  ),
});

const imageMetrics = (instruments: Instruments) => ({
  inputPixels: instruments.histogram('input_pixels', 'Pixels of received images.', pixels),
  resultPixels: instruments.histogram('result_pixels', 'Pixels of results.', pixels),
  inputBytes: instruments.counter('input_bytes_total', 'Bytes of received images.'),
  resultBytes: instruments.counter('result_bytes_total', 'Bytes of results.'),
  runs: instruments.counter('network_runs_total', 'Network runs, each on one image.'),
  second: instruments.counter(
    'second_looks_total',
    'Images that left the network in doubt and were given to the second one: its answer was taken, or was no surer.',
    ['answer'],
  ),
  uncertainty: instruments.histogram(
    'uncertainty_score',
    'Chances that a person has to look at a result, as in X-Uncertainty-Score.',
    [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  ),
  guided: instruments.counter(
    'guided_requests_total',
    'Images with a chosen subject, by how it was chosen.',
    ['by'],
  ),
  encodings: instruments.counter(
    'encodings_total',
    'Images encoded to find the subject that points or a box show.',
  ),
  types: instruments.counter('subjects_total', 'Detected subjects, by kind.', ['type']),
  replays: instruments.counter('replays_total', 'Requests answered with the result of an earlier one.'),
});

const creditMetrics = (instruments: Instruments) => ({
  charges: instruments.counter('charges_total', 'Charged results, by means of payment.', ['payment']),
  credits: instruments.counter('charged_credits_total', 'Charged credits, by means of payment.', ['payment']),
  unclaimed: instruments.counter(
    'unclaimed_purchases_total',
    'Purchases that were paid after their account was deleted.',
  ),
});

const networkMetrics = (instruments: Instruments) => ({
  loads: instruments.counter('network_loads_total', 'Number of times the network was loaded.'),
  unloads: instruments.counter('network_unloads_total', 'Number of times the idle network was unloaded.'),
  loadSeconds: instruments.gauge(
    'network_load_seconds',
    'Duration of the last load and warm-up of the network.',
  ),
  info: instruments.gauge('info', 'Always 1; the labels have version, network and precision.', [
    'version',
    'node',
    'network',
    'device',
    'precision',
    'profile',
    'onnxruntime',
  ]),
});

/**
 * Prometheus metrics (docs/operations.md), in a registry of their own, so that several services in one
 * process do not mix. Labels have few and fixed values: route patterns, never paths; no accounts, no keys.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #sources: Partial<Sources> = {};
  readonly #requests: ReturnType<typeof requestMetrics>;
  readonly #images: ReturnType<typeof imageMetrics>;
  readonly #credits: ReturnType<typeof creditMetrics>;
  readonly #network: ReturnType<typeof networkMetrics>;

  constructor() {
    const instruments = new Instruments(this.#registry);
    this.#requests = requestMetrics(instruments);
    this.#images = imageMetrics(instruments);
    this.#credits = creditMetrics(instruments);
    this.#network = networkMetrics(instruments);
    registerSources(this.#registry, this.#sources);
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
  install(attributes: Install): void {
    this.#network.info.set({ ...attributes }, 1);
  }

  /** The network was loaded. `ms`: milliseconds to open it and for its first run. */
  networkLoaded(ms: number): void {
    this.#network.loads.inc();
    this.#network.loadSeconds.set(ms / 1000);
  }

  networkUnloaded(): void {
    this.#network.unloads.inc();
  }

  /** A result was charged; `credits` may be 0. */
  charged(payment: string, credits: number): void {
    this.#credits.charges.inc({ payment });
    this.#credits.credits.inc({ payment }, credits);
  }

  readonly record: Recorder = (request) => {
    const { attributes, route, method, status } = request;
    const { requests, requestSeconds, errors, refusals, stageSeconds } = this.#requests;
    requests.inc({ route, method: methodLabel(method), status, size: attributes.size ?? 'none' });
    requestSeconds.observe({ route }, request.ms / 1000);
    if (attributes.error !== undefined) errors.inc({ code: attributes.error });
    if (attributes.reason !== undefined) refusals.inc({ reason: attributes.reason });
    if (attributes.purchase === 'unclaimed') this.#credits.unclaimed.inc();
    for (const { stage, ms } of request.spans) stageSeconds.observe({ stage }, ms / 1000);
    this.#recordImages(request);
  };

  #recordImages({ attributes }: RequestRecord): void {
    const { inputPixels, inputBytes, runs, second, guided, encodings, types, replays } = this.#images;
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
    if (uncertainty !== undefined) this.#images.uncertainty.observe(uncertainty);
    if (resultPixels !== undefined) this.#images.resultPixels.observe(resultPixels);
    if (resultBytes !== undefined) this.#images.resultBytes.inc(resultBytes);
  }

  readonly contentType: string = this.#registry.contentType;

  /** Returns all metrics in Prometheus' text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }
}

/** Reads a source. One that fails or hangs, for example a database, loses its own value only. */
async function inTime<T>(value: () => T | Promise<T> | undefined): Promise<T | undefined> {
  const cancelled = new AbortController();
  try {
    const late = sleep(1000, undefined, { signal: cancelled.signal }).catch(() => undefined);
    return await Promise.race([value(), late]);
  } catch {
    return undefined;
  } finally {
    cancelled.abort();
  }
}

/** Returns undefined for infinity: without a bound there is no value. */
const finite = (value: number | undefined) =>
  value === undefined || Number.isFinite(value) ? value : undefined;

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'OPTIONS']);
/** A client may send any method. */
const methodLabel = (method: string) => (methods.has(method) ? method : 'other');

type Read = () => number | undefined | Promise<number>;

/** The sources whose value is a gauge: name, help and where it is read. A missing source leaves its metric without a value. */
const gaugesOf = (sources: Partial<Sources>): readonly (readonly [string, string, Read])[] => [
  [
    'ready',
    '1 while the service accepts requests and can reach its stores.',
    () => Number(sources.ready?.() ?? false),
  ],
  ['admission_running', 'Requests in progress.', () => sources.admission?.().running],
  ['admission_waiting', 'Requests that wait for admission.', () => sources.admission?.().waiting],
  [
    'admission_wait_seconds',
    'Predicted duration of the waiting work.',
    () => {
      const stats = sources.admission?.();
      return stats && stats.waitingMs / stats.serviceRate / 1000;
    },
  ],
  ['memory_room_bytes', 'Memory limit of all requests together.', () => finite(sources.memory?.().room)],
  ['memory_held_bytes', 'Memory of bodies, downloads and answers.', () => sources.memory?.().held],
  ['memory_working_bytes', 'Memory reserved for requests in progress.', () => sources.memory?.().working],
  ['downloads_running', 'Images being downloaded.', () => sources.downloads?.()],
  [
    'engine_kept_bytes',
    'Unused memory kept for the next run of a network.',
    () => sources.engine?.().keptBytes,
  ],
  ['engine_queued', "Jobs waiting in the engine's queues.", () => sources.engine?.().queued],
  ['engine_running', 'Jobs running in the engine.', () => sources.engine?.().running],
  ['kept_results', 'Results cached for repeated requests.', () => sources.results?.().results],
  ['kept_results_bytes', 'Memory of cached results.', () => sources.results?.().bytes],
  ['open_reservations', 'Credits reserved for requests in progress.', () => sources.reservations?.()],
  ['balance_credits', 'Sum of all balances; the same on every node.', () => sources.balances?.()],
];

/** Registers what is read from the sources at each scrape. */
function registerSources(registry: Registry, sources: Partial<Sources>): void {
  const registers = [registry];
  for (const [name, help, read] of gaugesOf(sources))
    new Gauge({
      name: `cutout_${name}`,
      help,
      registers,
      async collect() {
        this.reset();
        const now = await inTime(read);
        if (now === undefined) this.remove();
        else this.set(now);
      },
    });
  new Counter({
    name: 'cutout_booked_credits_total',
    help: 'Credits granted, bought, adjusted and refunded, as in the ledger; the same on every node.',
    labelNames: ['kind', 'direction'],
    registers,
    async collect() {
      const rows = await inTime(() => sources.booked?.());
      this.reset();
      for (const { kind, direction, credits } of rows ?? []) this.inc({ kind, direction }, credits);
    },
  });
  new Counter({
    name: 'cutout_log_lines_dropped_total',
    help: 'Log lines that were dropped because the reader did not keep up.',
    registers,
    collect() {
      this.reset();
      this.inc(sources.droppedLines?.() ?? 0);
    },
  });
  new Counter({
    name: 'cutout_engine_jobs_total',
    help: 'Finished jobs of the engine, by outcome.',
    labelNames: ['outcome'],
    registers,
    collect() {
      const stats = sources.engine?.();
      this.reset();
      if (!stats) return;
      for (const outcome of ['done', 'failed', 'cancelled'] as const) this.inc({ outcome }, stats[outcome]);
    },
  });
  registerOpening(registers, () => sources.opening?.() ?? []);
  registerDevices(registers, () => sources.engine?.().devices ?? []);
}
