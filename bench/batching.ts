import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Command } from 'commander';
import { type BenchCommand, type Context, values } from './lib/command.ts';
import { computed, type Figure, type Outcome, type Part } from './lib/outcome.ts';
import { root } from './lib/paths.ts';
import { quantile, sum } from './lib/stats.ts';

const schedAddon = path.join(root, 'build', 'native', 'Release', 'cutout_sched_test.node');

interface BatchingOptions {
  readonly table?: string;
  readonly fixed: number;
  readonly item: number;
  readonly largest: number;
  readonly delay: number;
  readonly devices: readonly number[];
  readonly runs: number;
}

export const command: BenchCommand = {
  name: 'batching',
  title: 'Batches on GPUs, simulated',
  summary: 'the batch scheduler on a simulated clock under load: throughput and latency of 1 to 8 devices',
  unavailable: () =>
    existsSync(schedAddon) ? undefined : 'the scheduler alone is not built: run `npm run setup -- --tests`',
  options: (command: Command) =>
    command
      .option(
        '--table <file>',
        'measured times of a device: {"device": name, "latencies": [{"batch": 1, "ms": 5}, …]}',
      )
      .option('--fixed <ms>', 'without a table: milliseconds of a run, whatever its batch', values.number, 4)
      .option('--item <ms>', 'without a table: milliseconds more for each image', values.number, 1)
      .option('--largest <n>', 'without a table: largest batch; the others are its halves', values.whole, 8)
      .option('--delay <ms>', 'milliseconds that an idle device waits', values.number, 2)
      .option('--devices <list>', 'numbers of devices', values.wholes, [1, 2, 4, 8])
      .option('--runs <n>', 'runs at each load', values.whole, 20_000),
  all: { full: {}, quick: { runs: 4000 } },
};

/** [images, milliseconds of a run]. */
export type LatencyTable = readonly (readonly [batch: number, ms: number])[];

interface Simulated {
  /** Latencies of the runs. */
  readonly milliseconds: readonly number[];
  readonly batches: readonly number[];
  readonly members: readonly number[];
  readonly seconds: number;
  /** Share of the devices' time in which they ran. */
  readonly busy: number;
}

interface SchedAddon {
  /** Durations are nanoseconds. */
  simulate(load: {
    readonly devices: number;
    readonly buckets: LatencyTable;
    readonly maxDelay: number;
    readonly runsPerSecond: number;
    readonly runs: number;
    readonly seed: number;
  }): Simulated;
}

/** Shares of the best throughput that are offered. */
const LOADS = [0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1, 1.5, 3];

const count = (devices: number) => `${devices} device${devices === 1 ? '' : 's'}`;
const nanoseconds = (ms: number) => Math.round(ms * 1e6);

/** Sizes 1, 2, 4 … `largest` at a fixed cost and one for each image. */
export function modelTable({
  fixed,
  item,
  largest,
}: Pick<BatchingOptions, 'fixed' | 'item' | 'largest'>): LatencyTable {
  const sizes = [largest];
  for (let size = Math.floor(largest / 2); size >= 1; size = Math.floor(size / 2)) sizes.unshift(size);
  return sizes.map((size) => [size, fixed + item * size]);
}

/** A table of measured times, smallest batch first. Throws if the text is not one. */
export function parseTable(text: string): { readonly device: string; readonly table: LatencyTable } {
  const { device, latencies } = JSON.parse(text) as {
    readonly device?: unknown;
    readonly latencies?: readonly { readonly batch?: unknown; readonly ms?: unknown }[];
  };
  const table = (Array.isArray(latencies) ? latencies : []).map(({ batch, ms }) => {
    if (!(Number.isInteger(batch) && Number(batch) > 0 && typeof ms === 'number' && ms > 0))
      throw new Error('A latency needs a batch of at least 1 and milliseconds above 0.');
    return [Number(batch), ms] as const;
  });
  if (typeof device !== 'string' || table.length === 0)
    throw new Error('The table needs the name of its device and its latencies.');
  return { device, table: table.sort(([a], [b]) => a - b) };
}

/** Images per second of one device that is always full. */
export const bestRate = (table: LatencyTable): number =>
  Math.max(...table.map(([batch, ms]) => (1000 * batch) / ms));

interface Point {
  readonly load: number;
  readonly throughput: number;
  readonly p50: number;
  readonly p99: number;
  readonly batch: number;
}

export async function run(options: BatchingOptions, { progress }: Context): Promise<Outcome> {
  const { simulate } = createRequire(import.meta.url)(schedAddon) as SchedAddon;
  const measured = options.table === undefined ? undefined : parseTable(readFileSync(options.table, 'utf8'));
  const table = measured?.table ?? modelTable(options);
  const best = bestRate(table);
  const source = measured
    ? `times measured on ${measured.device}`
    : `a model, not a measurement: ${options.fixed} ms and ${options.item} ms for each image`;

  const curves = options.devices.map((devices) => {
    progress(count(devices));
    const points = LOADS.map((load): Point => {
      const found = simulate({
        devices,
        buckets: table.map(([batch, ms]) => [batch, nanoseconds(ms)]),
        maxDelay: nanoseconds(options.delay),
        runsPerSecond: load * devices * best,
        runs: options.runs,
        seed: 1,
      });
      return {
        load,
        throughput: found.milliseconds.length / found.seconds / (devices * best),
        p50: quantile(found.milliseconds, 0.5),
        p99: quantile(found.milliseconds, 0.99),
        batch: sum(found.members) / sum(found.batches),
      };
    });
    return { devices, points };
  });

  const at = (points: readonly Point[], load: number) => points.find((point) => point.load === load);
  const figures: Figure[] = curves.flatMap(({ devices, points }) => {
    const usual = at(points, 0.8);
    const overload = at(points, 3);
    if (!usual || !overload) return [];
    const name = `batching.${devices}`;
    return [
      computed(`${name}.spread`, `${count(devices)}, 80 % load: p99 over p50`, '×', usual.p99 / usual.p50, {
        atMost: 3,
      }),
      computed(
        `${name}.overload`,
        `${count(devices)}, 3 × load: throughput over the best`,
        '×',
        overload.throughput,
        {
          atLeast: 0.95,
        },
      ),
    ];
  });

  const series = (value: (point: Point) => number, last = Number.POSITIVE_INFINITY) =>
    curves.map(({ devices, points }) => ({
      name: count(devices),
      points: points.filter(({ load }) => load <= last).map((point) => [point.load, value(point)] as const),
      dots: true,
    }));
  const load = { label: 'offered load, × the best throughput' };
  const parts: Part[] = [
    {
      kind: 'lines',
      title: 'Throughput',
      x: load,
      y: { label: '× the best throughput' },
      series: series(({ throughput }) => throughput),
      marks: [{ axis: 'y', at: 0.95, label: 'goal at 3 ×' }],
    },
    {
      kind: 'lines',
      title: 'Latency, median',
      x: load,
      y: { label: 'ms' },
      series: series(({ p50 }) => p50, 1),
    },
    {
      kind: 'lines',
      title: 'Latency, 99th percentile',
      x: load,
      y: { label: 'ms' },
      series: series(({ p99 }) => p99, 1),
    },
    {
      kind: 'lines',
      title: 'Images in a batch',
      x: load,
      y: { label: 'mean' },
      series: series(({ batch }) => batch),
    },
    {
      kind: 'table',
      title: 'Load and latency',
      columns: ['devices', 'load', 'throughput', 'p50 ms', 'p99 ms', 'p99 / p50', 'images a batch'],
      rows: curves.flatMap(({ devices, points }) =>
        points.map(({ load, throughput, p50, p99, batch }) => [
          devices,
          load,
          throughput,
          p50,
          p99,
          p99 / p50,
          batch,
        ]),
      ),
      note: `Latencies: ${source}. Shares of ${Math.round(best)} images per second and device.`,
    },
  ];
  const { delay, runs } = options;
  return {
    settings: { table: source, delay, runs, devices: options.devices.join(' ') },
    figures,
    parts,
    notes: [
      `The scheduler is the product's (native/sched); devices and clock are simulated, from ${source}. Arrivals are a Poisson process.`,
    ],
  };
}
