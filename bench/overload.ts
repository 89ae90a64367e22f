import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { Pool } from 'undici';
import { jsonLines } from './lib/child.ts';
import { expectOk } from './lib/client.ts';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { openImages } from './lib/images.ts';
import { closedLoop, openLoop, type Sample, type Send } from './lib/load/generate.ts';
import { type Summary, summarise } from './lib/load/summary.ts';
import { computed, type Figure, type Outcome, type Part } from './lib/outcome.ts';
import { childScript } from './lib/paths.ts';
import { busyMs, processorMs } from './lib/server.ts';
import { mean, quantile } from './lib/stats.ts';
import { openTarget, type Target } from './lib/target.ts';

interface OverloadOptions extends Shared {
  readonly mp: number;
  readonly size: string;
  readonly parallel: number;
  readonly factors: readonly number[];
  readonly uploads: number;
}

export const command: BenchCommand = {
  name: 'overload',
  title: 'Overload',
  summary: 'what is served, how evenly, and whether health answers, at and far past saturation',
  shared: { rounds: 1, seconds: 50, target: true, images: true },
  options: (command: Command) =>
    command
      .option('--mp <n>', 'megapixels of the upload', values.number, 1)
      .option('--size <size>', 'of the result', 'full')
      .option('--parallel <n>', 'callers of the closed loop that finds the saturating load', values.whole, 4)
      .option('--factors <list>', 'open loops, as multiples of that', values.numbers, [1, 3])
      .option(
        '--uploads <n>',
        'files of 21 MB that arrive at once, as fast as they are taken',
        values.whole,
        16,
      ),
  all: { full: {}, quick: { seconds: 20 } },
};

/** Measurements while requests arrive at one rate. */
export interface Stage {
  readonly name: string;
  /** Requests sent per second. */
  readonly offered: number;
  /** Results per second while requests arrived; later ones do not count. */
  readonly goodput: number;
  readonly summary: Summary;
  /** Milliseconds of every health check. */
  readonly health: readonly number[];
  /** While requests arrived; NaN for a remote server. */
  readonly cores: Cores;
}

/** Mean number of busy cores. */
export interface Cores {
  readonly server: number;
  /** This process, which sends the requests and shares the machine. */
  readonly client: number;
  /** Other processes on the machine, whose time the server did not have. */
  readonly others: number;
}

const HEALTH_EVERY_MS = 50;
const FLOOD_MEGABYTES = 21;

/** Results per second among those that arrived while requests were sent. */
export const goodputOf = (samples: readonly Sample[], seconds: number): number =>
  samples.filter(({ code, done }) => code === 'ok' && done <= seconds * 1000).length / seconds;

/** Checks the server's health repeatedly while `work` runs. */
async function watched<T>(url: string, work: () => Promise<T>): Promise<readonly [T, readonly number[]]> {
  const pool = new Pool(new URL(url).origin, { connections: 1, headersTimeout: 60_000 });
  const times: number[] = [];
  let over = false;
  const looking = (async () => {
    while (!over) {
      const started = performance.now();
      const { statusCode, body } = await pool.request({ path: '/health/ready', method: 'GET' });
      await body.dump();
      if (statusCode !== 200) throw new Error(`/health/ready answered ${statusCode}`);
      times.push(performance.now() - started);
      await sleep(HEALTH_EVERY_MS);
    }
  })();
  try {
    const result = await work();
    over = true;
    await looking;
    return [result, times];
  } finally {
    over = true;
    await pool.close();
  }
}

/** Load of the cores for the first `seconds` from now. */
async function coresDuring(seconds: number, pid: number | undefined): Promise<Cores> {
  const look = async () => {
    const { user, system } = process.cpuUsage();
    const server = pid === undefined ? Number.NaN : await processorMs(pid);
    return { server, client: (user + system) / 1000, all: await busyMs() };
  };
  const before = await look();
  await sleep(seconds * 1000);
  const after = await look();
  const of = (who: 'server' | 'client' | 'all') => (after[who] - before[who]) / (seconds * 1000);
  const [server, client] = [of('server'), of('client')];
  return { server, client, others: Math.max(0, of('all') - server - client) };
}

/** The same stage of several rounds, combined. */
export function joined(rounds: readonly Round[], seconds: number): Stage {
  const [first] = rounds;
  const samples = rounds.flatMap((round) => round.samples);
  const cores = (who: keyof Cores) => mean(rounds.map((round) => round.cores[who]));
  return {
    name: first?.name ?? '',
    offered: mean(rounds.map(({ offered }) => offered)),
    goodput: goodputOf(samples, seconds) / rounds.length,
    summary: summarise(samples),
    health: rounds.flatMap(({ health }) => health),
    cores: { server: cores('server'), client: cores('client'), others: cores('others') },
  };
}

/** A stage, measured once. */
export interface Round extends Pick<Stage, 'name' | 'offered' | 'health' | 'cores'> {
  readonly samples: readonly Sample[];
}

async function stages(
  { parallel, factors, seconds, rounds }: OverloadOptions,
  target: Target,
  send: Send,
  { progress }: Context,
): Promise<readonly Stage[]> {
  const { address, pid } = target;
  const measure = async (name: string, offered: number, load: () => Promise<readonly Sample[]>) => {
    progress(name);
    const cores = coresDuring(seconds, pid);
    const [samples, health] = await watched(address, load);
    return { name, offered, samples, health, cores: await cores };
  };
  const names = [`${parallel} callers`, ...factors.map((factor) => `${factor} × saturation`)];
  const found: Round[] = [];
  // The stages in sequence, repeatedly, so that other load on the machine affects all equally.
  for (let round = 0; round < rounds; round++) {
    const closed = await measure(names[0] ?? '', Number.NaN, () => closedLoop({ parallel, seconds }, send));
    found.push({ ...closed, offered: goodputOf(closed.samples, seconds) });
    const peak = mean(found.filter(({ name }) => name === closed.name).map(({ offered }) => offered));
    if (!(peak > 0)) throw new Error('no closed loop got a result');
    for (const [index, factor] of factors.entries()) {
      const offered = factor * peak;
      const plan = { perSecond: offered, seconds, arrivals: 'random', drainSeconds: 120 } as const;
      found.push(await measure(names[index + 1] ?? '', offered, () => openLoop(plan, send)));
    }
  }
  return names.map((name) =>
    joined(
      found.filter((one) => one.name === name),
      seconds,
    ),
  );
}

/** Health while the largest files arrive, which are refused after they are read. */
async function flooded({ uploads, seconds }: OverloadOptions, target: Target): Promise<Flood> {
  const { address, key } = target;
  const flood = () =>
    jsonLines(childScript('load/flood.js'), [address, key, uploads, FLOOD_MEGABYTES, seconds]);
  const [lines, health] = await watched(address, flood);
  const codes = lines[0] as Summary['codes'];
  const sent = Object.values(codes).reduce((total, count) => total + count, 0);
  return { uploads, health, codes, perSecond: (sent * FLOOD_MEGABYTES) / seconds };
}

/** Measurements while files arrived. */
export interface Flood {
  readonly uploads: number;
  readonly health: readonly number[];
  readonly codes: Summary['codes'];
  /** Megabytes per second. */
  readonly perSecond: number;
}

const codesText = (codes: Summary['codes']): string =>
  Object.entries(codes)
    .map(([code, count]) => `${count} ${code}`)
    .join(', ');

function tableOf(all: readonly Stage[]): Part {
  return {
    kind: 'table',
    title: 'Stages',
    columns: [
      '',
      'sent/s',
      'served/s',
      'p50 ms',
      'p95 ms',
      'p99 ms',
      'health p99 ms',
      'health max ms',
      'server cores',
      'client',
      'others',
      'ms each',
      'answers',
    ],
    rows: all.map(({ name, offered, goodput, summary, health, cores }) => [
      name,
      offered,
      goodput,
      summary.p50,
      summary.p95,
      summary.p99,
      quantile(health, 0.99),
      quantile(health, 1),
      cores.server,
      cores.client,
      cores.others,
      (1000 * cores.server) / goodput,
      codesText(summary.codes),
    ]),
    note: 'Times are of requests that got a result. Health is asked every 50 ms on a connection of its own. Cores: how many were busy while requests came, with the server, this client and all other programs; ms each: processor time of the server for each result.',
  };
}

const floodTableOf = ({ uploads, health, codes, perSecond }: Flood): Part => ({
  kind: 'table',
  title: `${uploads} files of ${FLOOD_MEGABYTES} MB at once`,
  columns: ['MB/s', 'health p50 ms', 'p95 ms', 'p99 ms', 'max ms', 'answers'],
  rows: [[perSecond, ...[0.5, 0.95, 0.99, 1].map((q) => quantile(health, q)), codesText(codes)]],
  note: 'They come from a process of its own with a lower priority, so that health waits for the server alone.',
});

const floodFigureOf = ({ uploads, health }: Flood): Figure =>
  computed(
    'overload.uploads.health',
    `${uploads} uploads: slowest look at health`,
    'ms',
    quantile(health, 1),
    {
      atMost: 50,
    },
  );

export function figuresOf(all: readonly Stage[]): readonly Figure[] {
  const peak = Math.max(...all.map(({ goodput }) => goodput));
  // Different load by other processes during the stages does not count here.
  const each = ({ goodput, cores }: Stage) => goodput / cores.server;
  const best = Math.max(...all.map(each));
  return all.flatMap((stage) => {
    const { name, goodput, summary, health, cores } = stage;
    // Share of what is served under saturation; the stages before it serve as comparison.
    const kept = stage === all.at(-1) ? { atLeast: 0.92 } : undefined;
    const at = `overload.${name.replaceAll(/[^\w.]+/g, '_')}`;
    return [
      computed(`${at}.goodput`, `${name}: served, of the most`, '×', goodput / peak, kept),
      ...(Number.isNaN(cores.server)
        ? []
        : [
            computed(
              `${at}.efficiency`,
              `${name}: served for its processor time, of the most`,
              '×',
              each(stage) / best,
              kept,
            ),
          ]),
      computed(`${at}.spread`, `${name}: p99 over p50`, '×', summary.p99 / summary.p50, { atMost: 3 }),
      computed(`${at}.health`, `${name}: slowest look at health`, 'ms', quantile(health, 1), { atMost: 50 }),
    ];
  });
}

export async function run(options: OverloadOptions, context: Context): Promise<Outcome> {
  const { mp, size, seconds, rounds, images } = options;
  const image = await openImages(images).jpeg(mp);
  const target = await openTarget(options);
  try {
    const send: Send = async () => (await target.client.cutout(image, { size, format: 'png' })).code;
    context.progress('warming up');
    expectOk(await target.client.cutout(image, { size, format: 'png' }));
    const all = await stages(options, target, send, context);
    context.progress(`${options.uploads} files of ${FLOOD_MEGABYTES} MB at once`);
    const flood = await flooded(options, target);
    return {
      settings: { server: target.server, upload: `${mp} MP`, size, rounds, 'seconds a step': seconds },
      figures: [...figuresOf(all), floodFigureOf(flood)],
      parts: [tableOf(all), floodTableOf(flood)],
      notes: ['Client and server share the machine unless --url names another one.'],
    };
  } finally {
    await target.close();
  }
}
