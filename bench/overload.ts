import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { Pool } from 'undici';
import { expectOk } from './lib/client.ts';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { closedLoop, openLoop, type Sample, type Send } from './lib/load/generate.ts';
import { type Summary, summarise } from './lib/load/summary.ts';
import { computed, type Figure, type Outcome, type Part } from './lib/outcome.ts';
import { openPictures } from './lib/pictures.ts';
import { quantile } from './lib/stats.ts';
import { openTarget, type Target } from './lib/target.ts';

interface OverloadOptions extends Shared {
  readonly mp: number;
  readonly size: string;
  readonly parallel: number;
  readonly factors: readonly number[];
}

export const command: BenchCommand = {
  name: 'overload',
  title: 'Overload',
  summary: 'what is served, how evenly, and whether health answers, at and far past saturation',
  shared: { seconds: 50, target: true, images: true },
  options: (command: Command) =>
    command
      .option('--mp <n>', 'megapixels of the upload', values.number, 1)
      .option('--size <size>', 'of the result', 'full')
      .option('--parallel <n>', 'callers of the closed loop that finds the saturating load', values.whole, 4)
      .option('--factors <list>', 'open loops, as multiples of that', values.numbers, [1, 3]),
  all: { full: {}, quick: { seconds: 20 } },
};

/** What was measured while requests came at one rate. */
export interface Stage {
  readonly name: string;
  /** Requests sent a second. */
  readonly offered: number;
  /** Results a second while requests came; what was served after the last one came is not in it. */
  readonly goodput: number;
  readonly summary: Summary;
  /** Milliseconds of every look at /health/ready. */
  readonly health: readonly number[];
}

const HEALTH_EVERY_MS = 50;

/** Results a second of those that were there within the time that requests came. */
export const goodputOf = (samples: readonly Sample[], seconds: number): number =>
  samples.filter(({ code, done }) => code === 'ok' && done <= seconds * 1000).length / seconds;

/** Looks at the server's health again and again while `work` runs. */
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

async function stages(
  { parallel, factors, seconds }: OverloadOptions,
  target: Target,
  send: Send,
  { progress }: Context,
): Promise<readonly Stage[]> {
  const { address } = target;
  progress(`closed loop, ${parallel} callers`);
  const [closed, health] = await watched(address, () => closedLoop({ parallel, seconds }, send));
  const peak = goodputOf(closed, seconds);
  if (!(peak > 0)) throw new Error('no closed loop got a result');
  const found: Stage[] = [
    { name: `${parallel} callers`, offered: peak, goodput: peak, summary: summarise(closed), health },
  ];
  for (const factor of factors) {
    progress(`open loop, ${factor} × ${peak.toFixed(2)} a second`);
    const offered = factor * peak;
    const plan = { perSecond: offered, seconds, arrivals: 'random', drainSeconds: 120 } as const;
    const [samples, looks] = await watched(address, () => openLoop(plan, send));
    const name = `${factor} × saturation`;
    found.push({
      name,
      offered,
      goodput: goodputOf(samples, seconds),
      summary: summarise(samples),
      health: looks,
    });
  }
  return found;
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
      'answers',
    ],
    rows: all.map(({ name, offered, goodput, summary, health }) => [
      name,
      offered,
      goodput,
      summary.p50,
      summary.p95,
      summary.p99,
      quantile(health, 0.99),
      quantile(health, 1),
      codesText(summary.codes),
    ]),
    note: 'Times are of requests that got a result. Health is asked every 50 ms on a connection of its own.',
  };
}

export function figuresOf(all: readonly Stage[]): readonly Figure[] {
  const peak = Math.max(...all.map(({ goodput }) => goodput));
  return all.flatMap(({ name, goodput, summary, health }) => {
    const at = `overload.${name.replaceAll(/[^\w.]+/g, '_')}`;
    return [
      computed(`${at}.goodput`, `${name}: served, of the most`, '×', goodput / peak, { atLeast: 0.92 }),
      computed(`${at}.spread`, `${name}: p99 over p50`, '×', summary.p99 / summary.p50, { atMost: 3 }),
      computed(`${at}.health`, `${name}: slowest look at health`, 'ms', quantile(health, 1), { atMost: 50 }),
    ];
  });
}

export async function run(options: OverloadOptions, context: Context): Promise<Outcome> {
  const { mp, size, seconds, images } = options;
  const picture = await openPictures(images).jpeg(mp);
  const target = await openTarget(options);
  try {
    const send: Send = async () => (await target.client.cutout(picture, { size, format: 'png' })).code;
    context.progress('warming up');
    expectOk(await target.client.cutout(picture, { size, format: 'png' }));
    const all = await stages(options, target, send, context);
    return {
      settings: { server: target.server, upload: `${mp} MP`, size, 'seconds a step': seconds },
      figures: figuresOf(all),
      parts: [tableOf(all)],
      notes: ['Client and server share the machine unless --url names another one.'],
    };
  } finally {
    await target.close();
  }
}
