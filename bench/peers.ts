import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import type { Command } from 'commander';
import { bareRuns } from './lib/bare.ts';
import { expectOk } from './lib/client.ts';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { type Images, openImages } from './lib/images.ts';
import { computed, type Figure, measured, type Outcome, type Part, type Strips } from './lib/outcome.ts';
import { bareNetwork, peersFolder } from './lib/paths.ts';
import { type Agreement, agreement, matteOf } from './lib/peer/agreement.ts';
import { lookAt } from './lib/peer/look.ts';
import { missing, openPeer, type Peer, peerFolder } from './lib/peer/peer.ts';
import { median } from './lib/stats.ts';
import { openTarget } from './lib/target.ts';

interface PeersOptions extends Shared {
  readonly mp: readonly number[];
  readonly peers?: readonly string[];
  readonly install: boolean;
  readonly bare: boolean;
}

export const command: BenchCommand = {
  name: 'peers',
  title: 'Beside other programs',
  summary: 'the same images through other programs in the same run: time, memory, agreement of the mattes',
  shared: { rounds: 3, seconds: 240, target: true, images: true },
  options: (command: Command) =>
    command
      .option('--mp <list>', 'megapixels of the uploads', values.numbers, [1, 12])
      .option('--peers <names...>', 'folders of bench/peers (default: those that are installed)')
      .option('--install', 'install the packages of the peers named (npm ci in their folders) first', false)
      .option('--no-bare', 'leave out bare runs of the network'),
  all: { quick: { rounds: 1, mp: [1] } },
};

interface Opened {
  readonly name: string;
  readonly peer: Peer;
}

/** The peers that can run, started; and why the others cannot. */
async function openPeers(
  { peers, install }: PeersOptions,
  warmUp: string,
  { progress }: Context,
): Promise<{ readonly opened: readonly Opened[]; readonly notes: readonly string[] }> {
  const names =
    peers ??
    readdirSync(peersFolder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .sort();
  const opened: Opened[] = [];
  const notes: string[] = [];
  for (const name of names) {
    const folder = peerFolder(name);
    if (install && peers?.includes(name)) {
      progress(`installing ${name}`);
      execFileSync('npm', ['ci', '--ignore-scripts'], {
        cwd: folder,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
    }
    const reason = missing(folder);
    if (reason === undefined) {
      try {
        progress(`preparing ${name}`);
        opened.push({ name, peer: await openPeer(folder, warmUp) });
      } catch (error) {
        if (peers) throw error;
        notes.push(`${name} was left out: ${error instanceof Error ? error.message : String(error)}`);
      }
    } else if (peers) throw new Error(`${name}: ${reason}`);
    else notes.push(`${name} was left out: ${reason}`);
  }
  return { opened, notes };
}

/** One image at one size, and its measurements. */
interface Case {
  readonly name: string;
  readonly image: string;
  readonly megapixels: number;
  readonly file: string;
  readonly ours: number[];
  readonly run: number[];
  readonly bare: number[];
  /** By the peer's name. */
  readonly theirs: Map<string, number[]>;
  readonly agreements: Map<string, Agreement>;
  readonly looks: Map<string, Strips['rows'][number]>;
}

async function casesOf(imageSet: Images, mp: readonly number[], folder: string): Promise<readonly Case[]> {
  const cases: Case[] = [];
  for (const image of imageSet.names) {
    for (const megapixels of mp) {
      const file = path.join(folder, `${cases.length}.jpg`);
      await writeFile(file, await imageSet.jpeg(megapixels, image));
      cases.push({
        name: `${image}.${megapixels}mp`,
        image,
        megapixels,
        file,
        ours: [],
        run: [],
        bare: [],
        theirs: new Map(),
        agreements: new Map(),
        looks: new Map(),
      });
    }
  }
  return cases;
}

/** Mattes and images for viewing, once per case: results do not change from round to round. */
async function compare(one: Case, name: string, title: string, ours: Buffer, theirs: Buffer): Promise<void> {
  if (one.agreements.has(name)) return;
  const [own, other] = [await matteOf(ours), await matteOf(theirs)];
  one.agreements.set(name, agreement(own, other));
  one.looks.set(name, {
    label: `${one.image}, ${one.megapixels} MP`,
    images: await lookAt(
      await readFile(one.file),
      { png: ours, matte: own },
      { png: theirs, matte: other, title },
    ),
  });
}

/** Everything alternates within a round, so that a drift of the machine affects all equally. */
async function measureRounds(
  cases: readonly Case[],
  peers: readonly Opened[],
  options: PeersOptions,
  context: Context,
  folder: string,
): Promise<{ readonly server: string; readonly rounds: number }> {
  const { rounds, seconds, bare } = options;
  const { progress } = context;
  const { client, server, close } = await openTarget(options);
  try {
    const cut = async (file: string) =>
      expectOk(await client.cutout(await readFile(file), { size: '50MP', format: 'png' }));
    progress('warming up');
    if (cases[0]) await cut(cases[0].file);
    const begin = performance.now();
    let round = 0;
    while (round < rounds && (round === 0 || performance.now() - begin < seconds * 1000)) {
      round++;
      for (const one of cases) {
        const where = `round ${round} of ${rounds}, ${one.image} ${one.megapixels} MP`;
        progress(`${where}, ours`);
        const answer = await cut(one.file);
        one.ours.push(answer.ms);
        one.run.push(answer.stages['infer'] ?? Number.NaN);
        if (bare) {
          progress(`${where}, bare`);
          const setting = { processes: 1, threads: availableParallelism(), seconds: 3 };
          one.bare.push(median((await bareRuns('onnxruntime', bareNetwork(), setting)).times));
        }
        for (const { name, peer } of peers) {
          progress(`${where}, ${name}`);
          const out = path.join(folder, `${name}.png`);
          one.theirs.set(name, [...(one.theirs.get(name) ?? []), await peer.run(one.file, out)]);
          await compare(one, name, peer.about.title, answer.body, await readFile(out));
        }
      }
    }
    return { server, rounds: round };
  } finally {
    await close();
  }
}

/** The product's goals: its time over a peer's with the same weights, by megapixels of the upload. */
const GOALS: Readonly<Record<string, ReadonlyMap<number, number>>> = {
  imgly: new Map([
    [1, 0.045],
    [12, 0.025],
  ]),
  'rembg-process': new Map([
    [1, 0.15],
    [12, 0.11],
  ]),
};
const BARE_GOAL = 1.9;

const ratio = (a: readonly number[], b: readonly number[]): number => median(a) / median(b);

function figuresOf(cases: readonly Case[], peers: readonly Opened[]): readonly Figure[] {
  return cases.flatMap((one) => {
    const label = `${one.image}, ${one.megapixels} MP`;
    return [
      ...peers.map(({ name, peer }) => {
        const goal = GOALS[name]?.get(one.megapixels);
        return computed(
          `peers.${one.name}.over_${name}`,
          `ours against ${peer.about.title}: ${label}`,
          '×',
          ratio(one.ours, one.theirs.get(name) ?? []),
          goal === undefined ? undefined : { atMost: goal },
        );
      }),
      ...(one.bare.length > 0
        ? [
            computed(
              `peers.${one.name}.over_bare`,
              `ours against a bare run of the network: ${label}`,
              '×',
              ratio(one.ours, one.bare),
              one.megapixels === 12 ? { atMost: BARE_GOAL } : undefined,
            ),
          ]
        : []),
      measured(`peers.${one.name}.ours`, `ours: ${label}`, 'ms', one.ours),
      ...peers.map(({ name, peer }) =>
        measured(
          `peers.${one.name}.${name}`,
          `${peer.about.title}: ${label}`,
          'ms',
          one.theirs.get(name) ?? [],
        ),
      ),
    ];
  });
}

function partsOf(
  cases: readonly Case[],
  peers: readonly (Opened & { readonly peak: number })[],
): readonly Part[] {
  const label = ({ image, megapixels }: Case) => `${image}, ${megapixels} MP`;
  return [
    {
      kind: 'bars',
      title: 'JPEG in, PNG out, full size',
      unit: 'ms',
      bars: cases.flatMap((one) => [
        { label: label(one), value: median(one.ours), series: 'Cutout' },
        ...peers.map(({ name, peer }) => ({
          label: label(one),
          value: median(one.theirs.get(name) ?? []),
          series: peer.about.title,
        })),
      ]),
      note: 'Ours over HTTP, from the first byte sent to the last received; theirs within their own process, network open.',
    },
    {
      kind: 'table',
      title: 'Times',
      columns: [
        'image',
        'MP',
        'ours ms',
        'network in it ms',
        'bare run ms',
        'ours / bare',
        ...peers.flatMap(({ name }) => [`${name} ms`, `ours / ${name}`]),
      ],
      rows: cases.map((one) => [
        one.image,
        one.megapixels,
        median(one.ours),
        median(one.run),
        one.bare.length > 0 ? median(one.bare) : null,
        one.bare.length > 0 ? ratio(one.ours, one.bare) : null,
        ...peers.flatMap(({ name }) => {
          const times = one.theirs.get(name) ?? [];
          return [median(times), ratio(one.ours, times)];
        }),
      ]),
    },
    {
      kind: 'table',
      title: 'Programs',
      columns: ['program', 'licence', 'weights', 'until its first image ms', 'most memory MB'],
      rows: peers.map(({ peer, peak }) => [
        peer.about.title,
        peer.about.licence,
        peer.about.weights,
        peer.prepareMs,
        peak,
      ]),
    },
    {
      kind: 'table',
      title: 'Agreement of the mattes with ours',
      columns: ['image', 'MP', 'program', 'mean difference /255', 'opposed %', 'overlap'],
      rows: cases.flatMap((one) =>
        [...one.agreements].map(([name, { meanDifference, opposed, overlap }]) => [
          one.image,
          one.megapixels,
          name,
          meanDifference,
          100 * opposed,
          overlap.toFixed(4),
        ]),
      ),
      note: 'Opposed: pixels whose alpha differs by more than a half. Overlap: of the pixels with alpha of a half or more, common to both over in either.',
    },
    ...peers.map(
      ({ name, peer }): Strips => ({
        kind: 'strips',
        title: `Beside ${peer.about.title}`,
        rows: cases.flatMap(({ looks }) => looks.get(name) ?? []),
      }),
    ),
  ];
}

export async function run(options: PeersOptions, context: Context): Promise<Outcome> {
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-peers-'));
  const imageSet = openImages(options.images);
  const started: Opened[] = [];
  try {
    const warmUp = path.join(folder, 'warm-up.jpg');
    await writeFile(warmUp, await imageSet.jpeg(0.25));
    const cases = await casesOf(imageSet, options.mp, folder);
    const { opened, notes } = await openPeers(options, warmUp, context);
    started.push(...opened);
    const { server, rounds } = await measureRounds(cases, opened, options, context, folder);
    const peers = await Promise.all(opened.map(async (one) => ({ ...one, peak: await one.peer.peak() })));
    return {
      settings: { server, images: imageSet.names.join(', '), 'rounds done': rounds },
      figures: figuresOf(cases, opened),
      parts: partsOf(cases, peers),
      notes: [...notes, 'Peers run with their default settings and hold their network open between images.'],
    };
  } finally {
    for (const { peer } of started) await peer.close();
    await rm(folder, { recursive: true, force: true });
  }
}
