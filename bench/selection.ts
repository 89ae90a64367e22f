import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import sharp from 'sharp';
import { type Client, expectOk } from './lib/client.ts';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { computed, type Figure, measured, type Outcome, type Part } from './lib/outcome.ts';
import { modelsFolder, root } from './lib/paths.ts';
import { processorMs } from './lib/server.ts';
import { median } from './lib/stats.ts';
import { openTarget } from './lib/target.ts';
import { agreement, boundsOf, deepestPoint, jittered, type Mask, nextClick } from './selection/geometry.ts';
import { hasData, numbers, type Scene, SOURCE_NAMES, type SourceName, scenes } from './selection/scenes.ts';

interface SelectionOptions extends Shared {
  readonly data: string;
  readonly sources: readonly SourceName[];
  readonly count: number;
  readonly seed: number;
  readonly strips: number;
}

const DATA = path.join(root, '..', 'shared', 'data');
/** Each edge of a box is moved by up to this share of its side. */
const JITTER = 0.03;

export const command: BenchCommand = {
  name: 'selection',
  title: 'The subject that points or a box show',
  summary: 'one of two subjects by one point or a box: overlap with it, what is left of the other, cost',
  shared: { rounds: 20, seconds: 3600 },
  options: (command: Command) =>
    command
      .option('--data <folder>', 'photos with alphas (bench/selection/scenes.ts)', DATA)
      .option('--sources <list>', 'of them', values.words(...SOURCE_NAMES), [
        'aim',
        'rembg',
        'u2net',
        'pymatting',
        'coco',
      ])
      .option('--count <n>', 'choices, each by a point and by a box', values.whole, 200)
      .option('--seed <n>', 'of the composed photos and the boxes', values.whole, 1)
      .option('--strips <n>', 'choices to show, those with the smallest overlap', values.whole, 12),
  unavailable: () => {
    if (!hasData(DATA)) return `the photos are not in ${DATA}`;
    const missing = ['isnet', 'sam2-tiny', 'sam2-tiny-decoder'].find(
      (name) => !existsSync(path.join(modelsFolder(), name)),
    );
    return missing && `the network ${missing} is not in ${modelsFolder()}`;
  },
  all: { full: { count: 40 }, quick: { count: 6, rounds: 2 } },
};

const WAYS = ['point', 'box'] as const;
type Way = (typeof WAYS)[number];

interface Row {
  readonly source: string;
  readonly name: string;
  readonly way: Way;
  readonly asked: string;
  readonly iou: number;
  readonly left: number;
  readonly photo: Buffer;
  readonly result: Buffer;
}

const anyOf = (masks: readonly Uint8Array[], length: number): Uint8Array => {
  const all = new Uint8Array(length);
  for (const mask of masks)
    for (const [i, value] of mask.entries()) if (value > (all[i] ?? 0)) all[i] = value;
  return all;
};

/** What is sent: the deepest point of the mask, or its bounds with jitter, in pixels. */
function question(way: Way, mask: Mask, random: () => number): Readonly<Record<string, string>> {
  if (way === 'point') {
    const { x, y } = deepestPoint(mask);
    return { subject_points: `${x}px ${y}px` };
  }
  const bounds = boundsOf(mask) ?? { x1: 0, y1: 0, x2: mask.width, y2: mask.height };
  const { x1, y1, x2, y2 } = jittered(bounds, JITTER, mask, random);
  return { subject_box: `${x1}px ${y1}px ${x2}px ${y2}px` };
}

/** An alpha with nothing in it, for an answer that there is no subject. */
const empty = (width: number, height: number): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background: 'black' } })
    .png()
    .toBuffer();

async function choose(client: Client, scene: Scene, random: () => number): Promise<Row[]> {
  const { source, name, jpeg, width, height, subjects } = scene;
  const rows: Row[] = [];
  for (const [at, chosen] of subjects.slice(0, scene.choices).entries()) {
    const others = anyOf(
      subjects.filter((each) => each !== chosen),
      width * height,
    );
    for (const way of WAYS) {
      const fields = question(way, { data: chosen, width, height }, random);
      const options = { size: 'full', channels: 'alpha', format: 'png' };
      const answer = await client.cutout(jpeg, { ...options, ...fields }, { same: true });
      const nothing = answer.code === 'unknown_foreground';
      const result = nothing ? await empty(width, height) : expectOk(answer).body;
      const data = await sharp(result).extractChannel(0).raw().toBuffer();
      const overlap = agreement({ data, width, height }, chosen, others);
      const asked = Object.values(fields).join();
      const subject = `${name}, ${at + 1}`;
      rows.push({ source, name: subject, way, asked, ...overlap, photo: jpeg, result });
    }
  }
  return rows;
}

const mean = (all: readonly number[]): number => all.reduce((sum, each) => sum + each, 0) / all.length;

function tableOf(rows: readonly Row[]): Part {
  const groups = [...new Set(rows.map(({ source }) => source)), 'all'];
  return {
    kind: 'table',
    title: 'Overlap with the chosen subject (IoU), and share of the other subject that is left',
    columns: ['source', 'by', 'choices', 'IoU, mean', 'median', 'at least 0.85', 'other left, mean, %'],
    rows: groups.flatMap((group) =>
      WAYS.map((way) => {
        const some = rows.filter((row) => row.way === way && (group === 'all' || row.source === group));
        const ious = some.map(({ iou }) => iou);
        return [
          group,
          way,
          some.length,
          mean(ious),
          median(ious),
          mean(ious.map((iou) => Number(iou >= 0.85))),
          100 * mean(some.map(({ left }) => left)),
        ];
      }),
    ),
    note: `The point is the deepest of the subject; each edge of the box is moved by up to ${100 * JITTER} % of its side. In composed scenes two subjects lie over a photo without one, cut out by the alphas that come with their photos, which other networks made; masks of coco are by people.`,
  };
}

async function stripsOf(rows: readonly Row[], count: number): Promise<Part> {
  const shown = async (image: Buffer): Promise<string> => {
    const jpeg = await sharp(image).resize(360, 240, { fit: 'inside' }).jpeg({ quality: 80 }).toBuffer();
    return `data:image/jpeg;base64,${jpeg.toString('base64')}`;
  };
  const worst = [...rows].sort((a, b) => a.iou - b.iou).slice(0, count);
  return {
    kind: 'strips',
    title: 'Choices with the smallest overlap',
    rows: await Promise.all(
      worst.map(async ({ source, name, way, asked, iou, left, photo, result }) => ({
        label: `${source}: ${name}, by a ${way}`,
        note: `${asked}: IoU ${iou.toFixed(3)}, of the other ${(100 * left).toFixed(1)} %`,
        images: [
          { caption: 'photo', src: await shown(photo) },
          { caption: 'alpha', src: await shown(result) },
        ],
      })),
    ),
  };
}

const figuresOf = (rows: readonly Row[]): Figure[] =>
  WAYS.flatMap((way) => {
    const some = rows.filter((row) => row.way === way);
    return [
      computed(
        `selection.${way}.iou`,
        `overlap with the subject (IoU), by a ${way}, mean`,
        '',
        mean(some.map(({ iou }) => iou)),
        {
          atLeast: way === 'point' ? 0.85 : 0.9,
        },
      ),
      computed(
        `selection.${way}.left`,
        `of the other subject is left, by a ${way}, mean`,
        '%',
        100 * mean(some.map(({ left }) => left)),
        {
          atMost: 2,
        },
      ),
    ];
  });

interface Costs {
  readonly plain: number[];
  readonly first: number[];
  readonly further: number[];
  /** Of further clicks: those that ran the matting network again. */
  readonly again: number[];
}

/** Further clicks on each scene. */
const FURTHER = 2;
/** A run of the matting network takes longer, a kept output less. */
const RUN_MS = 40;
/** Pixels: nobody clicks on an error that is thinner, but, to see what it costs, beside an earlier click. */
const VISIBLE = 4;

/** Adds processor milliseconds of a plain request, the first click on an image, and further clicks on the same subject. */
async function addCosts(
  costs: Costs,
  client: Client,
  pid: number,
  { jpeg, width, height, subjects }: Scene,
): Promise<void> {
  const [chosen = new Uint8Array()] = subjects;
  const spend = async (fields: Readonly<Record<string, string>>) => {
    const before = await processorMs(pid);
    const answer = await client.cutout(jpeg, { size: 'full', format: 'png', ...fields }, { same: true });
    const spent = (await processorMs(pid)) - before;
    const nothing = answer.code === 'unknown_foreground';
    const data = nothing
      ? new Uint8Array(width * height)
      : await sharp(expectOk(answer).body).extractChannel('alpha').raw().toBuffer();
    const ran = (answer.stages['infer'] ?? 0) > RUN_MS;
    return { spent, ran, result: { data, width, height } };
  };
  costs.plain.push((await spend({})).spent);
  const { x, y } = deepestPoint({ data: chosen, width, height });
  let points = `${x}px ${y}px`;
  let last = await spend({ subject_points: points });
  costs.first.push(last.spent);
  for (let click = 1; click <= FURTHER; click++) {
    const next = nextClick(last.result, chosen);
    points +=
      next.depth < VISIBLE
        ? `; ${x + 2 * click}px ${y}px`
        : `; ${next.include ? '' : '-'}${next.x}px ${next.y}px`;
    last = await spend({ subject_points: points });
    costs.further.push(last.spent);
    costs.again.push(Number(last.ran));
  }
}

/** The median of the ratios of measurements to their scene's; `of` has the same number for each. */
export const ratio = (of: readonly number[], to: readonly number[]): number => {
  const each = of.length / to.length;
  return median(of.map((value, at) => value / (to[Math.floor(at / each)] ?? Number.NaN)));
};

export async function run(options: SelectionOptions, { progress }: Context): Promise<Outcome> {
  const { data, sources, count, seed, seconds, rounds, strips } = options;
  const begin = performance.now();
  const target = await openTarget({});
  const { client, pid = 0 } = target;
  const rows: Row[] = [];
  const spent: Costs = { plain: [], first: [], further: [], again: [] };
  // The networks are opened at the first click of all.
  let opened = false;
  try {
    const random = numbers(seed + 1);
    for await (const scene of scenes(data, sources, { count, seed })) {
      if (!opened) await addCosts({ plain: [], first: [], further: [], again: [] }, client, pid, scene);
      else if (spent.plain.length < rounds) await addCosts(spent, client, pid, scene);
      opened = true;
      rows.push(...(await choose(client, scene, random)));
      progress(`${rows.length / 2} choices`);
      if (performance.now() - begin > seconds * 1000) break;
    }
  } finally {
    await target.close();
  }
  if (!opened) throw new Error('there is no photo');
  const { plain, first, further, again } = spent;
  return {
    settings: { sources: sources.join(), choices: rows.length / 2, seed, jitter: JITTER },
    figures: [
      ...figuresOf(rows),
      measured('selection.plain', 'processor time of a plain request, 1 MP', 'ms', plain),
      measured('selection.first', 'of the first click on an image', 'ms', first),
      measured('selection.further', 'of a further click', 'ms', further),
      computed('selection.first.ratio', 'first click against a plain request', '×', ratio(first, plain), {
        atMost: 2.5,
      }),
      computed(
        'selection.further.ratio',
        'further click against a plain request',
        '×',
        ratio(further, plain),
        {
          atMost: 0.6,
        },
      ),
      computed(
        'selection.further.mean',
        'further click against a plain request, mean',
        '×',
        mean(further) / mean(plain),
      ),
      computed(
        'selection.further.again',
        'further clicks that ran the matting network again',
        '%',
        100 * mean(again),
      ),
    ],
    parts: [tableOf(rows), await stripsOf(rows, strips)],
  };
}
