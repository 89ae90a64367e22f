import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { expectOk } from './lib/client.ts';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { openImages } from './lib/images.ts';
import { type Figure, measured, type Outcome } from './lib/outcome.ts';
import { memory } from './lib/server.ts';
import { openTarget } from './lib/target.ts';

interface RestOptions extends Shared {
  readonly mp: number;
}

export const command: BenchCommand = {
  name: 'rest',
  title: 'Rest',
  summary: 'memory while nothing is asked for, and the first call after it',
  shared: { rounds: 3, images: true },
  options: (command: Command) => command.option('--mp <n>', 'megapixels of the upload', values.number, 1),
  all: { full: {}, quick: { rounds: 1 } },
};

/** Seconds after which memory of runs, and then the network, is released; and the delay until that is visible. */
const RELEASE = 3;
const UNLOAD = 10;
const SEEN = 4;

interface Round {
  /** Resident MB: after a call; when the memory of runs is released; when the network is unloaded. */
  readonly warm: number;
  readonly released: number;
  readonly resting: number;
  /** Milliseconds of the first call after that, and of the next. */
  readonly first: number;
  readonly next: number;
}

const TITLES: Readonly<Record<keyof Round, readonly [string, string]>> = {
  warm: ['resident after a call', 'MB'],
  released: ['resident when the memory of runs is released (CUTOUT_IDLE_RELEASE)', 'MB'],
  resting: ['resident when the network is unloaded (CUTOUT_IDLE_UNLOAD)', 'MB'],
  first: ['first call after that', 'ms'],
  next: ['the next call', 'ms'],
};

export async function run({ mp, rounds, images }: RestOptions, { progress }: Context): Promise<Outcome> {
  const image = await openImages(images).jpeg(mp);
  const target = await openTarget(
    {},
    { CUTOUT_IDLE_RELEASE: String(RELEASE), CUTOUT_IDLE_UNLOAD: String(UNLOAD), CUTOUT_KEEP_SECONDS: '0' },
  );
  const { client, pid = 0, close } = target;
  const all: Round[] = [];
  try {
    const call = async () => expectOk(await client.cutout(image, { size: 'full', format: 'png' })).ms;
    const resident = async () => (await memory(pid)).now;
    await call();
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1} of ${rounds}`);
      await call();
      const warm = await resident();
      await sleep((RELEASE + SEEN) * 1000);
      const released = await resident();
      await sleep((UNLOAD - RELEASE) * 1000);
      const resting = await resident();
      const first = await call();
      all.push({ warm, released, resting, first, next: await call() });
    }
  } finally {
    await close();
  }
  const figures: readonly Figure[] = (Object.keys(TITLES) as (keyof Round)[]).map((name) =>
    measured(
      `rest.${name}`,
      ...TITLES[name],
      all.map((round) => round[name]),
    ),
  );
  return { settings: { upload: `${mp} MP` }, figures, parts: [] };
}
