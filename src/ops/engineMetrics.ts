import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** What is read of each network that is being opened at a scrape (OpeningStep of src/engine/types.ts). */
export interface OpeningSource {
  readonly network: string;
  readonly step: number;
  readonly steps: number;
  readonly seconds: number;
}

/** Metrics with the label `network`, without values while none is being opened. */
export function registerOpening(registers: Registry[], opening: () => readonly OpeningSource[]): void {
  const gauge = (name: string, help: string, value: (source: OpeningSource) => number) =>
    new Gauge({
      name: `cutout_network_opening_${name}`,
      help,
      labelNames: ['network'],
      registers,
      collect() {
        this.reset();
        for (const source of opening()) this.set({ network: source.network }, value(source));
      },
    });
  gauge('step', 'Step that the opening of the network is at, from 1 on.', ({ step }) => step);
  gauge('steps', 'Steps of its opening: sizes of batches times GPUs.', ({ steps }) => steps);
  gauge('seconds', 'Time since its opening began.', ({ seconds }) => seconds);
}

const waitName = 'cutout_engine_batch_wait_seconds';
const waitHelp = 'Time that images waited for their batch, by the GPU.';

/** What is read of each device at a scrape (DeviceStats of src/engine/types.ts). */
export interface DeviceSource {
  readonly id: number;
  readonly lost?: string;
  readonly losses: number;
  readonly batches: readonly number[];
  readonly waits: readonly (readonly [upToMs: number, images: number])[];
  readonly waitedMs: number;
  readonly memoryBytes?: number;
  readonly memoryLimitBytes?: number;
}

/** The waits of the devices, which the engine counts, as a histogram. */
class WaitHistogram extends Histogram<'device'> {
  readonly #devices: () => readonly DeviceSource[];

  constructor(registers: Registry[], devices: () => readonly DeviceSource[]) {
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

/** Metrics with the label `device`, the number of a GPU. */
export function registerDevices(registers: Registry[], devices: () => readonly DeviceSource[]): void {
  new Gauge({
    name: 'cutout_device_up',
    help: '1 while the GPU takes images, 0 while it is lost.',
    labelNames: ['device'],
    registers,
    collect() {
      this.reset();
      for (const { id, lost } of devices()) this.set({ device: id }, lost === undefined ? 1 : 0);
    },
  });
  const memory = (name: string, help: string, bytes: (device: DeviceSource) => number | undefined) =>
    new Gauge({
      name: `cutout_device_memory_${name}`,
      help,
      labelNames: ['device'],
      registers,
      collect() {
        this.reset();
        for (const device of devices()) this.set({ device: device.id }, bytes(device) ?? 0);
      },
    });
  memory('bytes', 'Memory of the GPU that networks and images take.', ({ memoryBytes }) => memoryBytes);
  memory(
    'limit_bytes',
    'Memory of the GPU that networks and images may take; 0: not known.',
    ({ memoryLimitBytes }) => memoryLimitBytes,
  );
  new Counter({
    name: 'cutout_device_losses_total',
    help: 'Number of times the GPU stopped working.',
    labelNames: ['device'],
    registers,
    collect() {
      this.reset();
      for (const { id, losses } of devices()) this.inc({ device: id }, losses);
    },
  });
  new Counter({
    name: 'cutout_engine_batches_total',
    help: 'Runs of the network in batches, by the GPU and the number of images.',
    labelNames: ['device', 'images'],
    registers,
    collect() {
      this.reset();
      for (const { id, batches } of devices())
        for (const [images, count] of batches.entries())
          if (images > 0) this.inc({ device: id, images }, count);
    },
  });
  new WaitHistogram(registers, devices);
}
