import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { expectOk } from './lib/client.ts';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { type Images, openImages } from './lib/images.ts';
import { mixed, mixedSender } from './lib/mixed.ts';
import { computed, type Figure, type Outcome, type Part } from './lib/outcome.ts';
import { memory, resetPeak } from './lib/server.ts';
import { median, slope } from './lib/stats.ts';
import { openTarget } from './lib/target.ts';

interface MemoryOptions extends Shared {
  readonly mp: readonly number[];
  readonly requests: number;
  readonly pid?: number;
}

export const command: BenchCommand = {
  name: 'memory',
  title: 'Memory',
  summary: 'peak of a request over the idle server, and what stays after many mixed requests',
  shared: { rounds: 3, target: true, images: true },
  options: (command: Command) =>
    command
      .option('--mp <list>', 'megapixels of the uploads', values.numbers, [1, 12, 25, 50])
      .option('--requests <n>', 'mixed requests for the settled memory', values.whole, 100)
      .option('--pid <n>', 'process of the server at --url, on this machine', values.whole),
  all: { full: { requests: 200 }, quick: { mp: [12, 50], requests: 20, rounds: 1 } },
};

/** Freed memory is returned to the system within seconds, not at once. */
const SETTLE_MS = 3000;
const SERIES_MS = 25;

interface Peak {
  readonly megapixels: number;
  readonly idle: number;
  /** Above idle, one per round. */
  readonly over: readonly number[];
  /** Resident MB against seconds since the request of the last round began. */
  readonly series: readonly (readonly [number, number])[];
}

interface Settled {
  /** Resident MB after that many requests and a pause. */
  readonly points: readonly (readonly [number, number])[];
}

interface Watched {
  readonly pid: number;
  readonly send: (image: Buffer) => Promise<void>;
}

async function peakOf(
  { pid, send }: Watched,
  image: Buffer,
  megapixels: number,
  rounds: number,
): Promise<Peak> {
  const over: number[] = [];
  const idles: number[] = [];
  let series: (readonly [number, number])[] = [];
  for (let round = 0; round < rounds; round++) {
    await sleep(SETTLE_MS);
    const { now: idle } = await memory(pid);
    await resetPeak(pid);
    const begin = performance.now();
    let running = true;
    series = [];
    const watch = (async () => {
      while (running) {
        series.push([(performance.now() - begin) / 1000, (await memory(pid)).now]);
        await sleep(SERIES_MS);
      }
    })();
    try {
      await send(image);
    } finally {
      running = false;
      await watch;
    }
    idles.push(idle);
    over.push((await memory(pid)).peak - idle);
  }
  return { megapixels, idle: median(idles), over, series };
}

/**
 * Peaks: a separate server for each size, warmed up by a small request, so that memory left by an earlier image
 * cannot hide what this one takes. A server at an address gets all sizes in sequence, smallest first.
 */
async function peaks(
  options: MemoryOptions,
  imageSet: Images,
  { progress }: Context,
): Promise<readonly Peak[]> {
  const { mp, rounds, url, pid: given } = options;
  const found: Peak[] = [];
  let target = await openTarget(options);
  try {
    for (const [at, megapixels] of [...mp].sort((a, b) => a - b).entries()) {
      if (at > 0 && url === undefined) {
        await target.close();
        target = await openTarget(options);
      }
      const { client } = target;
      const pid = target.pid ?? given ?? 0;
      const send = async (image: Buffer) => {
        expectOk(await client.cutout(image, { size: '50MP', format: 'png' }));
      };
      await send(await imageSet.jpeg(0.25));
      const image = await imageSet.jpeg(megapixels);
      progress(`peak of ${megapixels} MP`);
      found.push(await peakOf({ pid, send }, image, megapixels, rounds));
    }
  } finally {
    await target.close();
  }
  return found;
}

/** Cached results have a bound of their own (CUTOUT_KEEP_MEGABYTES): off, so that only leaks are visible. */
async function settled(options: MemoryOptions, imageSet: Images, { progress }: Context): Promise<Settled> {
  const { requests, pid: given } = options;
  const { client, pid = given ?? 0, close } = await openTarget(options, { CUTOUT_KEEP_SECONDS: '0' });
  const points: (readonly [number, number])[] = [];
  try {
    const send = mixedSender(client, imageSet);
    const every = Math.max(20, Math.ceil(requests / 20 / 20) * 20);
    for (const [at, one] of mixed(requests).entries()) {
      progress(`request ${at + 1} of ${requests}, ${one.label}`);
      await send(one);
      if ((at + 1) % every === 0 || at + 1 === requests) {
        await sleep(SETTLE_MS);
        points.push([at + 1, (await memory(pid)).now]);
      }
    }
  } finally {
    await close();
  }
  return { points };
}

/** MB that 100 requests add after every kind of request has occurred: without the first fifth. */
export function growth(points: Settled['points']): number {
  const requests = points.at(-1)?.[0] ?? 0;
  return 100 * slope(points.filter(([at]) => at > requests / 5));
}

/** Allowed MB above idle for a request of this size. */
const allowed = (megapixels: number): number => 9 * megapixels + 60;

function figuresOf(found: readonly Peak[], { points }: Settled): readonly Figure[] {
  const last = points.at(-1)?.[0] ?? 0;
  return [
    ...found.map(({ megapixels, over }) => ({
      name: `memory.${megapixels}mp.over_idle`,
      title: `peak over idle, ${megapixels} MP JPEG to PNG`,
      unit: 'MB',
      median: median(over),
      samples: over,
      goal: { atMost: allowed(megapixels) },
    })),
    ...(points.length > 2
      ? [
          computed('memory.settled', `settled after ${last} mixed requests`, 'MB', points.at(-1)?.[1] ?? 0),
          computed('memory.growth', 'settled memory added by 100 requests', 'MB', growth(points), {
            atMost: 5,
          }),
        ]
      : []),
  ];
}

function partsOf(found: readonly Peak[], { points }: Settled): readonly Part[] {
  return [
    {
      kind: 'table',
      title: 'Peak of one request, JPEG to PNG at its own size',
      columns: ['MP', 'idle MB', 'over idle MB', 'most of all rounds', 'allowed MB', 'bytes a pixel'],
      rows: found.map(({ megapixels, idle, over }) => [
        megapixels,
        idle,
        median(over),
        Math.max(...over),
        allowed(megapixels),
        median(over) / megapixels,
      ]),
      note: 'Idle: after one small request, with the memory of a network run in place. Allowed: 9 bytes an input pixel and 60 MB.',
    },
    {
      kind: 'lines',
      title: 'Memory over idle while a request is worked on',
      x: { label: 'seconds since the request was sent' },
      y: { label: 'MB over idle' },
      series: found.map(({ megapixels, idle, series }) => ({
        name: `${megapixels} MP`,
        points: series.map(([second, resident]) => [second, Math.max(0, resident - idle)] as const),
      })),
    },
    {
      kind: 'lines',
      title: 'Settled memory over many mixed requests',
      x: { label: 'requests' },
      y: { label: 'resident MB' },
      series: [{ name: 'resident MB', points, dots: true }],
      note: 'Sizes from 0.25 to 50 MP, every format, previews, backgrounds, shadows and mistakes; each point after a pause of 3 s.',
    },
  ];
}

export async function run(options: MemoryOptions, context: Context): Promise<Outcome> {
  const { url, pid, images, rounds } = options;
  if (url !== undefined && pid === undefined)
    throw new Error('memory is read from the process: --url needs --pid of a server on this machine');
  const imageSet = openImages(images);
  const found = await peaks(options, imageSet, context);
  const stayed = await settled(options, imageSet, context);
  return {
    settings: { server: url ?? 'started here', rounds, 'mixed requests': options.requests },
    figures: figuresOf(found, stayed),
    parts: partsOf(found, stayed),
  };
}
