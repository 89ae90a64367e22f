import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type DeviceSource, registerDevices } from './deviceMetrics.ts';
import { type OpeningSource, registerOpening } from './openingMetrics.ts';
import type { Recorder, RequestRecord } from './record.ts';
import type { RequestAttributes } from './telemetry.ts';

/** Attributes of an installation that do not change while it runs; one label each. */
export interface Install {
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
export interface Sources {
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
  /** In credits, not quarters. */
  readonly balances: () => Promise<number>;
  readonly booked: () => Promise<readonly BookedCredits[]>;
}

/** Seconds: from the time of a repeated request to the longest time a client waits. */
const requestSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 8, 13, 30, 60, 120];
const stageSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128];
/** Includes the sizes of the contract. */
const pixels = [0.25e6, 0.5e6, 1e6, 1.5e6, 2e6, 4e6, 8e6, 12e6, 16e6, 25e6, 36e6, 50e6];

/**
 * Prometheus metrics (docs/operations.md), in a registry of their own, so that several services in one
 * process do not mix. Labels have few and fixed values: route patterns, never paths; no accounts, no keys.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #sources: Partial<Sources> = {};
  readonly #requests: Counter<'route' | 'method' | 'status' | 'size'>;
  readonly #errors: Counter<'code'>;
  readonly #refusals: Counter<'reason'>;
  readonly #requestSeconds: Histogram<'route'>;
  readonly #stageSeconds: Histogram<'stage'>;
  readonly #inputPixels: Histogram;
  readonly #resultPixels: Histogram;
  readonly #inputBytes: Counter;
  readonly #resultBytes: Counter;
  readonly #runs: Counter;
  readonly #types: Counter<'type'>;
  readonly #guided: Counter<'by'>;
  readonly #encodings: Counter;
  readonly #replays: Counter;
  readonly #charges: Counter<'payment'>;
  readonly #credits: Counter<'payment'>;
  readonly #unclaimed: Counter;
  readonly #loads: Counter;
  readonly #unloads: Counter;
  readonly #loadSeconds: Gauge;
  readonly #info: Gauge;

  constructor() {
    const registers = [this.#registry];
    const counter = <L extends string = never>(
      name: string,
      help: string,
      labelNames: readonly L[] = [],
    ): Counter<L> => new Counter({ name: `cutout_${name}`, help, labelNames: [...labelNames], registers });
    const histogram = <L extends string = never>(
      name: string,
      help: string,
      buckets: number[],
      labelNames: readonly L[] = [],
    ): Histogram<L> =>
      new Histogram({ name: `cutout_${name}`, help, buckets, labelNames: [...labelNames], registers });

    this.#requests = counter('requests_total', 'Completed requests. size: as requested, or none.', [
      'route',
      'method',
      'status',
      'size',
    ]);
    this.#errors = counter('errors_total', 'Answers with an error, by its code.', ['code']);
    this.#refusals = counter('refusals_total', 'Requests refused for now, by reason.', ['reason']);
    this.#requestSeconds = histogram(
      'request_duration_seconds',
      'Duration from the headers of a request to the end of its answer.',
      requestSeconds,
      ['route'],
    );
    this.#stageSeconds = histogram(
      'stage_duration_seconds',
      'Duration of the stages of requests, named as in Server-Timing.',
      stageSeconds,
      ['stage'],
    );
    this.#inputPixels = histogram('input_pixels', 'Pixels of received images.', pixels);
    this.#resultPixels = histogram('result_pixels', 'Pixels of results.', pixels);
    this.#inputBytes = counter('input_bytes_total', 'Bytes of received images.');
    this.#resultBytes = counter('result_bytes_total', 'Bytes of results.');
    this.#runs = counter('network_runs_total', 'Network runs, each on one image.');
    this.#guided = counter('guided_requests_total', 'Images with a chosen subject, by how it was chosen.', [
      'by',
    ]);
    this.#encodings = counter(
      'encodings_total',
      'Images encoded to find the subject that points or a box show.',
    );
    this.#types = counter('subjects_total', 'Detected subjects, by kind.', ['type']);
    this.#replays = counter('replays_total', 'Requests answered with the result of an earlier one.');
    this.#charges = counter('charges_total', 'Charged results, by means of payment.', ['payment']);
    this.#credits = counter('charged_credits_total', 'Charged credits, by means of payment.', ['payment']);
    this.#unclaimed = counter(
      'unclaimed_purchases_total',
      'Purchases that were paid after their account was deleted.',
    );
    this.#loads = counter('network_loads_total', 'Number of times the network was loaded.');
    this.#unloads = counter('network_unloads_total', 'Number of times the idle network was unloaded.');
    this.#loadSeconds = new Gauge({
      name: 'cutout_network_load_seconds',
      help: 'Duration of the last load and warm-up of the network.',
      registers,
    });
    this.#info = new Gauge({
      name: 'cutout_info',
      help: 'Always 1; the labels have version, network and precision.',
      labelNames: ['version', 'node', 'network', 'device', 'precision', 'profile', 'onnxruntime'],
      registers,
    });
    this.#read();
    collectDefaultMetrics({ register: this.#registry });
    // Gauges named like counters; the same numbers exist by type.
    for (const name of ['handles', 'requests', 'resources'])
      this.#registry.removeSingleMetric(`nodejs_active_${name}_total`);
  }

  /** Adds a part of the service to what is read at each scrape. */
  watch(sources: Partial<Sources>): void {
    Object.assign(this.#sources, sources);
  }

  install(attributes: Install): void {
    this.#info.set({ ...attributes }, 1);
  }

  /** `ms` to open the network and for its first run. */
  networkLoaded(ms: number): void {
    this.#loads.inc();
    this.#loadSeconds.set(ms / 1000);
  }

  networkUnloaded(): void {
    this.#unloads.inc();
  }

  /** A result was charged; `credits` may be 0. */
  charged(payment: string, credits: number): void {
    this.#charges.inc({ payment });
    this.#credits.inc({ payment }, credits);
  }

  readonly record: Recorder = (request) => {
    const { attributes, route, method, status } = request;
    this.#requests.inc({ route, method: methodLabel(method), status, size: attributes.size ?? 'none' });
    this.#requestSeconds.observe({ route }, request.ms / 1000);
    if (attributes.error !== undefined) this.#errors.inc({ code: attributes.error });
    if (attributes.reason !== undefined) this.#refusals.inc({ reason: attributes.reason });
    if (attributes.purchase === 'unclaimed') this.#unclaimed.inc();
    for (const { stage, ms } of request.spans) this.#stageSeconds.observe({ stage }, ms / 1000);
    this.#images(request);
  };

  #images({ attributes }: RequestRecord): void {
    if (attributes.inputPixels !== undefined) this.#inputPixels.observe(attributes.inputPixels);
    if (attributes.inputBytes !== undefined) this.#inputBytes.inc(attributes.inputBytes);
    // Each result counts once, with the request that made it.
    if (!attributes.shared) this.#results(attributes);
    if (attributes.runs !== undefined) this.#runs.inc(attributes.runs);
    if (attributes.guidance !== undefined) this.#guided.inc({ by: attributes.guidance });
    if (attributes.encodings !== undefined) this.#encodings.inc(attributes.encodings);
    if (attributes.type !== undefined) this.#types.inc({ type: attributes.type });
    if (attributes.replayed) this.#replays.inc();
  }

  #results({ resultPixels, resultBytes }: RequestAttributes): void {
    if (resultPixels !== undefined) this.#resultPixels.observe(resultPixels);
    if (resultBytes !== undefined) this.#resultBytes.inc(resultBytes);
  }

  readonly contentType: string = this.#registry.contentType;

  /** All metrics in Prometheus' text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** Reads the sources. A missing source leaves its metric without a value. */
  #read(): void {
    const registers = [this.#registry];
    const gauge = (name: string, help: string, value: () => number | undefined | Promise<number>) =>
      new Gauge({
        name: `cutout_${name}`,
        help,
        registers,
        async collect() {
          this.reset();
          const now = await inTime(value);
          if (now === undefined) this.remove();
          else this.set(now);
        },
      });
    const sources = this.#sources;
    gauge('ready', '1 while the service accepts requests and can reach its stores.', () =>
      Number(sources.ready?.() ?? false),
    );
    gauge('admission_running', 'Requests in progress.', () => sources.admission?.().running);
    gauge('admission_waiting', 'Requests that wait for admission.', () => sources.admission?.().waiting);
    gauge('admission_wait_seconds', 'Predicted duration of the waiting work.', () => {
      const stats = sources.admission?.();
      return stats && stats.waitingMs / stats.serviceRate / 1000;
    });
    gauge('memory_room_bytes', 'Memory limit of all requests together.', () =>
      finite(sources.memory?.().room),
    );
    gauge('memory_held_bytes', 'Memory of bodies, downloads and answers.', () => sources.memory?.().held);
    gauge(
      'memory_working_bytes',
      'Memory reserved for requests in progress.',
      () => sources.memory?.().working,
    );
    gauge('downloads_running', 'Images being downloaded.', () => sources.downloads?.());
    gauge(
      'engine_kept_bytes',
      'Unused memory kept for the next run of a network.',
      () => sources.engine?.().keptBytes,
    );
    gauge('engine_queued', "Jobs waiting in the engine's queues.", () => sources.engine?.().queued);
    gauge('engine_running', 'Jobs running in the engine.', () => sources.engine?.().running);
    gauge('kept_results', 'Results cached for repeated requests.', () => sources.results?.().results);
    gauge('kept_results_bytes', 'Memory of cached results.', () => sources.results?.().bytes);
    gauge('open_reservations', 'Credits reserved for requests in progress.', () => sources.reservations?.());
    gauge('balance_credits', 'Sum of all balances; the same on every node.', () => sources.balances?.());
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
}

/** A source that fails or hangs, for example a database, loses its own value only. */
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

/** Without a bound there is no value. */
const finite = (value: number | undefined) =>
  value === undefined || Number.isFinite(value) ? value : undefined;

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'OPTIONS']);
/** A client may send any method. */
const methodLabel = (method: string) => (methods.has(method) ? method : 'other');
