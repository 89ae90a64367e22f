import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { EngineStats, OpeningStep } from '../engine/types.ts';

type DeviceStats = EngineStats['devices'][number];

/** Credits that were added to or taken from accounts other than by use. */
interface BookedCredits {
  readonly kind: string;
  readonly direction: 'in' | 'out';
  readonly credits: number;
}

/** Values read at every scrape. Parts that are opened later, or not at all, are added by `Metrics.watch`. */
export interface Sources {
  /** Dropped log lines since the start. */
  readonly droppedLines: () => number;
  readonly opening: () => readonly OpeningStep[];
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
  readonly engine: () => EngineStats;
  readonly results: () => { readonly results: number; readonly bytes: number; readonly inFlight: number };
  readonly reservations: () => number | Promise<number>;
  /** Returns the sum of all balances in credits, not quarters. */
  readonly balances: () => Promise<number>;
  readonly booked: () => Promise<readonly BookedCredits[]>;
}

type Sample = readonly [value: number, labels?: Readonly<Record<string, string | number>>];
type Read<T> = () => T | undefined | Promise<T | undefined>;

/** Reads a source. One that fails or hangs, for example a database, loses its own value only. */
async function inTime<T>(value: Read<T>): Promise<T | undefined> {
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

const waitName = 'cutout_engine_batch_wait_seconds';
const waitHelp = 'Time that images waited for their batch, by the GPU.';

/** The waits of the devices, which the engine counts, as a histogram. */
class WaitHistogram extends Histogram<'device'> {
  readonly #devices: () => readonly DeviceStats[];

  constructor(registers: Registry[], devices: () => readonly DeviceStats[]) {
    super({ name: waitName, help: waitHelp, buckets: [], labelNames: ['device'], registers });
    this.#devices = devices;
  }

  /** What the registry and Histogram.get() print; prom-client has no type for it. */
  async getForPromString() {
    const values = this.#devices().flatMap(({ id, waits, waitedMs }) => {
      let count = 0;
      const buckets = waits.map(([upToMs, images]) => {
        count += images;
        const le = Number.isFinite(upToMs) ? upToMs / 1000 : '+Inf';
        return { metricName: `${waitName}_bucket`, labels: { device: id, le }, value: count };
      });
      const labels = { device: id };
      return [
        ...buckets,
        { metricName: `${waitName}_sum`, labels, value: waitedMs / 1000 },
        { metricName: `${waitName}_count`, labels, value: count },
      ];
    });
    return { name: waitName, help: waitHelp, type: 'histogram', values, aggregator: 'sum' };
  }
}

/** Registers what is read from the sources at each scrape. A missing source leaves its metric without a value. */
export function registerSources(registry: Registry, sources: Partial<Sources>): void {
  const registers = [registry];
  const register = (
    Kind: typeof Gauge | typeof Counter,
    name: string,
    help: string,
    labelNames: string[],
    read: Read<readonly Sample[]>,
  ) => {
    async function collect(this: Gauge | Counter): Promise<void> {
      const samples = await inTime(read);
      this.reset();
      // Without labels there is a value of 0 otherwise.
      if (labelNames.length === 0 && !samples) this.remove();
      for (const [value, labels = {}] of samples ?? []) this.inc(labels, value);
    }
    new Kind({ name: `cutout_${name}`, help, labelNames, registers, collect });
  };
  const gauge = (name: string, help: string, read: Read<number>) =>
    register(Gauge, name, help, [], async () => {
      const value = await read();
      return value === undefined ? undefined : [[value]];
    });

  gauge('ready', '1 while the service accepts requests and can reach its stores.', () =>
    Number(sources.ready?.() ?? false),
  );
  gauge('admission_running', 'Requests in progress.', () => sources.admission?.().running);
  gauge('admission_waiting', 'Requests that wait for admission.', () => sources.admission?.().waiting);
  gauge('admission_wait_seconds', 'Predicted duration of the waiting work.', () => {
    const stats = sources.admission?.();
    return stats && stats.waitingMs / stats.serviceRate / 1000;
  });
  gauge('memory_room_bytes', 'Memory limit of all requests together.', () => finite(sources.memory?.().room));
  gauge('memory_held_bytes', 'Memory of bodies, downloads and answers.', () => sources.memory?.().held);
  gauge(
    'memory_working_bytes',
    'Memory reserved for requests in progress.',
    () => sources.memory?.().working,
  );
  gauge('downloads_running', 'Images being downloaded.', () => sources.downloads?.());
  gauge('kept_results', 'Results cached for repeated requests.', () => sources.results?.().results);
  gauge('kept_results_bytes', 'Memory of cached results.', () => sources.results?.().bytes);
  gauge('open_reservations', 'Credits reserved for requests in progress.', () => sources.reservations?.());
  gauge('balance_credits', 'Sum of all balances; the same on every node.', () => sources.balances?.());
  register(
    Counter,
    'booked_credits_total',
    'Credits granted, bought, adjusted and refunded, as in the ledger; the same on every node.',
    ['kind', 'direction'],
    async () =>
      (await sources.booked?.())?.map(({ kind, direction, credits }) => [credits, { kind, direction }]) ?? [],
  );
  register(
    Counter,
    'log_lines_dropped_total',
    'Log lines that were dropped because the reader did not keep up.',
    [],
    () => [[sources.droppedLines?.() ?? 0]],
  );

  const engine = () => sources.engine?.();
  gauge('engine_kept_bytes', 'Unused memory kept for the next run of a network.', () => engine()?.keptBytes);
  gauge('engine_queued', "Jobs waiting in the engine's queues.", () => engine()?.queued);
  gauge('engine_running', 'Jobs running in the engine.', () => engine()?.running);
  register(Counter, 'engine_jobs_total', 'Finished jobs of the engine, by outcome.', ['outcome'], () => {
    const stats = engine();
    return (
      stats && (['done', 'failed', 'cancelled'] as const).map((outcome) => [stats[outcome], { outcome }])
    );
  });

  /** Registers a value of each network that is being opened. */
  const opening = (name: string, help: string, value: (step: OpeningStep) => number) =>
    register(Gauge, `network_opening_${name}`, help, ['network'], () =>
      sources.opening?.().map((step) => [value(step), { network: step.network }]),
    );
  opening('step', 'Step that the opening of the network is at, from 1 on.', ({ step }) => step);
  opening('steps', 'Steps of its opening: sizes of batches times GPUs.', ({ steps }) => steps);
  opening('seconds', 'Time since its opening began.', ({ seconds }) => seconds);

  const devices = () => engine()?.devices ?? [];
  /** Registers a value of each GPU, by its number. */
  const device = (
    Kind: typeof Gauge | typeof Counter,
    name: string,
    help: string,
    value: (device: DeviceStats) => number | undefined,
  ) =>
    register(Kind, `device_${name}`, help, ['device'], () =>
      devices().map((each) => [value(each) ?? 0, { device: each.id }]),
    );
  device(Gauge, 'up', '1 while the GPU takes images, 0 while it is lost.', ({ lost }) =>
    lost === undefined ? 1 : 0,
  );
  device(
    Gauge,
    'memory_bytes',
    'Memory of the GPU that networks and images take.',
    ({ memoryBytes }) => memoryBytes,
  );
  device(
    Gauge,
    'memory_limit_bytes',
    'Memory of the GPU that networks and images may take; 0: not known.',
    ({ memoryLimitBytes }) => memoryLimitBytes,
  );
  device(Counter, 'losses_total', 'Number of times the GPU stopped working.', ({ losses }) => losses);
  register(
    Counter,
    'engine_batches_total',
    'Runs of the network in batches, by the GPU and the number of images.',
    ['device', 'images'],
    () =>
      devices().flatMap(({ id, batches }) =>
        batches.map((count, images): Sample => [count, { device: id, images }]).slice(1),
      ),
  );
  new WaitHistogram(registers, devices);
}
