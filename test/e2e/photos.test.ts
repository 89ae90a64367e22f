import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import test from 'ava';
import sharp from 'sharp';
import { root } from '../fixtures/cli.ts';
import { unless } from '../fixtures/leftOut.ts';
import { alphaOf, correlation, cutOut, networkMissing, startReal } from './real.ts';

const data = path.join(root, '..', 'shared', 'data');

interface Row {
  readonly file: string;
  readonly set: string;
  readonly kind: string;
  readonly input: string;
  readonly reference: string;
}

/** manifest.csv; only its first five columns, which hold no quotes. */
function manifest(): Row[] {
  const lines = readFileSync(path.join(data, 'manifest.csv'), 'utf8').trim().split('\n').slice(1);
  return lines.map((line) => {
    const [file = '', set = '', kind = '', input = '', reference = ''] = line.split(',');
    return { file, set, kind, input, reference };
  });
}

const median = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** A group of references, and the lowest acceptable median correlation. */
interface Group {
  readonly name: string;
  readonly takes: (row: Row) => boolean;
  readonly atLeast: number;
}

/**
 * Bounds below the measured values (in brackets), and why. The same weights must agree almost to the pixel; other
 * networks and matting methods differ about single objects, so their median counts; the masks of COCO
 * are coarse polygons around a selection of objects that was not the network's.
 */
const groups: readonly Group[] = [
  { name: "IS-Net's authors (1.000)", takes: (row) => row.set === 'isnet_demo', atLeast: 0.99 },
  { name: 'rembg, its IS-Net (1.000)', takes: (row) => /isnet-general-use/.test(row.file), atLeast: 0.99 },
  { name: 'rembg, BiRefNet (0.988)', takes: (row) => /birefnet-general\.png/.test(row.file), atLeast: 0.9 },
  { name: 'U2Net (0.987)', takes: (row) => /^u2net\/u2net_results/.test(row.file), atLeast: 0.95 },
  { name: 'GFM, P3M, AIM (0.987)', takes: (row) => row.set === 'jizhizili_peers', atLeast: 0.95 },
  { name: 'COCO masks (0.806)', takes: (row) => row.set === 'coco_permissive', atLeast: 0.7 },
];

const here = existsSync(path.join(data, 'manifest.csv'));
const run = unless(here ? networkMissing : '../shared/data is not here', test.serial);

run('every photograph is cut out at full size, and agrees with the references there are', async (t) => {
  t.timeout(1_200_000);
  const rows = manifest();
  const server = await startReal(t);
  const scores = new Map<Group, { file: string; score: number }[]>(groups.map((group) => [group, []]));
  const empty: string[] = [];
  for (const { file } of rows.filter((row) => row.kind === 'input')) {
    const photo = await readFile(path.join(data, file));
    const answer = await cutOut(server, photo, { size: '50MP', format: 'png', channels: 'alpha' });
    const body = Buffer.from(await answer.arrayBuffer());
    if (answer.status === 400 && body.includes('unknown_foreground')) {
      empty.push(file);
      continue;
    }
    if (answer.status !== 200) {
      t.fail(`${file}: ${answer.status} ${body}`);
      continue;
    }
    const { autoOrient } = await sharp(photo).metadata();
    const alpha = await alphaOf(body);
    t.deepEqual([alpha.width, alpha.height], [autoOrient.width, autoOrient.height], file);
    for (const row of rows.filter((row) => row.input === file)) {
      const group = groups.find((group) => group.takes(row));
      if (!group) continue;
      const reference = await alphaOf(path.join(data, row.file), alpha);
      scores.get(group)?.push({ file: row.file, score: correlation(alpha.data, reference.data) });
    }
  }
  for (const [group, list] of scores) {
    const middle = median(list.map(({ score }) => score));
    const worst = [...list].sort((a, b) => a.score - b.score).slice(0, 3);
    t.log(
      `${group.name}: ${list.length} references, median correlation ${middle.toFixed(3)}; worst ${worst
        .map(({ file, score }) => `${path.basename(file)} ${score.toFixed(2)}`)
        .join(', ')}`,
    );
    t.true(middle >= group.atLeast, `${group.name}: ${middle}`);
  }
  t.log(`nothing found in ${empty.length}: ${empty.join(', ')}`);
  t.true(empty.length <= 5);
});
