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
type Awaitable<T> = T | Promise<T>;

/** Reads a source. One that fails or hangs, for example a database, loses its own value only. */
async function inTime<T>(value: () => Awaitable<T>): Promise<T | undefined> {
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

/** A metric whose values are read at each scrape: a number, or one for each combination of its labels; undefined: no value. */
interface Collected {
  readonly kind: typeof Gauge | typeof Counter;
  readonly help: string;
  readonly labels: readonly string[];
  readonly read: (sources: Partial<Sources>) => Awaitable<number | readonly Sample[] | undefined>;
}

const metric =
  (kind: Collected['kind']) =>
  (help: string, read: Collected['read'], ...labels: readonly string[]): Collected => ({
    kind,
    help,
    labels,
    read,
  });
const gauge = metric(Gauge);
const counter = metric(Counter);

/** A value of each network that is being opened. */
const ofOpening = (help: string, value: (step: OpeningStep) => number) =>
  gauge(
    help,
    ({ opening }) => opening?.().map((step) => [value(step), { network: step.network }]),
    'network',
  );

/** A value of each GPU, by its number. */
const ofDevice = (of: typeof gauge, help: string, value: (device: DeviceStats) => number | undefined) =>
  of(
    help,
    ({ engine }) => engine?.().devices.map((device) => [value(device) ?? 0, { device: device.id }]),
    'device',
  );

const outcomes = ['done', 'failed', 'cancelled'] as const;

/** By their names without `cutout_`. */
const collected: Readonly<Record<string, Collected>> = {
  ready: gauge('1 while the service accepts requests and can reach its stores.', ({ ready }) =>
    Number(ready?.() ?? false),
  ),
  admission_running: gauge('Requests in progress.', ({ admission }) => admission?.().running),
  admission_waiting: gauge('Requests that wait for admission.', ({ admission }) => admission?.().waiting),
  admission_wait_seconds: gauge('Predicted duration of the waiting work.', ({ admission }) => {
    const stats = admission?.();
    return stats && stats.waitingMs / stats.serviceRate / 1000;
  }),
  memory_room_bytes: gauge('Memory limit of all requests together.', ({ memory }) => finite(memory?.().room)),
  memory_held_bytes: gauge('Memory of bodies, downloads and answers.', ({ memory }) => memory?.().held),
  memory_working_bytes: gauge(
    'Memory reserved for requests in progress.',
    ({ memory }) => memory?.().working,
  ),
  downloads_running: gauge('Images being downloaded.', ({ downloads }) => downloads?.()),
  kept_results: gauge('Results cached for repeated requests.', ({ results }) => results?.().results),
  kept_results_bytes: gauge('Memory of cached results.', ({ results }) => results?.().bytes),
  open_reservations: gauge('Credits reserved for requests in progress.', ({ reservations }) =>
    reservations?.(),
  ),
  balance_credits: gauge('Sum of all balances; the same on every node.', ({ balances }) => balances?.()),
  booked_credits_total: counter(
    'Credits granted, bought, adjusted and refunded, as in the ledger; the same on every node.',
    async ({ booked }) =>
      (await booked?.())?.map(({ kind, direction, credits }) => [credits, { kind, direction }]),
    ...['kind', 'direction'],
  ),
  log_lines_dropped_total: counter(
    'Log lines that were dropped because the reader did not keep up.',
    ({ droppedLines }) => droppedLines?.() ?? 0,
  ),
  engine_kept_bytes: gauge(
    'Unused memory kept for the next run of a network.',
    ({ engine }) => engine?.().keptBytes,
  ),
  engine_queued: gauge("Jobs waiting in the engine's queues.", ({ engine }) => engine?.().queued),
  engine_running: gauge('Jobs running in the engine.', ({ engine }) => engine?.().running),
  engine_jobs_total: counter(
    'Finished jobs of the engine, by outcome.',
    ({ engine }) => {
      const stats = engine?.();
      return stats && outcomes.map((outcome) => [stats[outcome], { outcome }]);
    },
    'outcome',
  ),
  engine_batches_total: counter(
    'Runs of the network in batches, by the GPU and the number of images.',
    ({ engine }) =>
      engine?.().devices.flatMap(({ id, batches }) =>
        batches.map((count, images): Sample => [count, { device: id, images }]).slice(1),
      ),
    ...['device', 'images'],
  ),
  network_opening_step: ofOpening(
    'Step that the opening of the network is at, from 1 on.',
    ({ step }) => step,
  ),
  network_opening_steps: ofOpening(
    'Steps of its opening: sizes of batches times GPUs.',
    ({ steps }) => steps,
  ),
  network_opening_seconds: ofOpening('Time since its opening began.', ({ seconds }) => seconds),
  device_up: ofDevice(gauge, '1 while the GPU takes images, 0 while it is lost.', ({ lost }) =>
    lost === undefined ? 1 : 0,
  ),
  device_memory_bytes: ofDevice(
    gauge,
    'Memory of the GPU that networks and images take.',
    ({ memoryBytes }) => memoryBytes,
  ),
  device_memory_limit_bytes: ofDevice(
    gauge,
    'Memory of the GPU that networks and images may take; 0: not known.',
    ({ memoryLimitBytes }) => memoryLimitBytes,
  ),
  device_losses_total: ofDevice(counter, 'Number of times the GPU stopped working.', ({ losses }) => losses),
};

/** Registers them. A missing source leaves its metric without a value. */
export function registerCollected(registry: Registry, sources: Partial<Sources>): void {
  const registers = [registry];
  for (const [name, { kind: Kind, help, labels, read }] of Object.entries(collected)) {
    async function collect(this: Gauge | Counter): Promise<void> {
      const found = await inTime(() => read(sources));
      const samples = typeof found === 'number' ? ([[found]] as const) : found;
      this.reset();
      // Without labels there is a value of 0 otherwise.
      if (labels.length === 0 && !samples) this.remove();
      for (const [value, of = {}] of samples ?? []) this.inc(of, value);
    }
    new Kind({ name: `cutout_${name}`, help, labelNames: labels, registers, collect });
  }
  new WaitHistogram(registers, () => sources.engine?.().devices ?? []);
}
