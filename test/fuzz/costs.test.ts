import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import anyTest, { type TestFn } from 'ava';
import sharp from 'sharp';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { probe } from '../../src/image/probe.ts';
import { contractLimits } from '../../src/image/types.ts';
import { root } from '../fixtures/cli.ts';
import { engineOptions } from '../fixtures/engineSetup.ts';
import { form, type Service, startService } from '../fixtures/service.ts';
import { corpus } from './corpus.ts';
import { Dice } from './dice.ts';
import { grown } from './growth.ts';

/**
 * Searches for files that cost more processor time than their pixels: grows profiles, scans, chunks, frames and boxes, and
 * goes on from those that cost most. `npm run fuzz -- --only costs` searches longer, with the seed it prints, and leaves the
 * worst files in build/fuzz/costs, and the one that a crash ended with.
 */
const folder = path.join(root, 'build', 'fuzz', 'costs');
const seconds = Number(process.env['CUTOUT_FUZZ_SECONDS'] ?? Number.NaN);
const seed = Number(process.env['CUTOUT_FUZZ_SEED'] ?? 20_261_127);
const count = 60;

/** Files from which the search goes on, and those that are reported. */
const [parents, reported] = [25, 5] as const;
/** Processor seconds of the smallest network of the catalogue, which every image takes beside its pixels. */
const networkSeconds = 0.1;
/** Larger files cost what their bytes cost to receive and to copy, and are tried too slowly. */
const mostBytes = 3e6;
/** How much more than a plain image of as many pixels a file may cost. */
const mostTimes = 5;

const inputFormats = ['gif', 'tiff', 'avif', 'heic'] as const;
const limits = { ...contractLimits, formats: [...contractLimits.formats, ...inputFormats] };

const test = anyTest as TestFn<{ engine: Engine }>;
test.before((t) => {
  t.context.engine = createEngine(loadAddon(), engineOptions());
});
test.after.always((t) => t.context.engine.close(0));

/** Processor seconds of this process, in which the service runs, and what the service answered. */
async function cost(service: Service, role: string, file: Buffer, plain: Buffer) {
  const fields = role === 'image_file' ? { image_file: file } : { image_file: plain, [role]: file };
  const before = process.cpuUsage();
  const answer = await service.post(form({ ...fields, size: 'full', format: 'jpg' }));
  await answer.arrayBuffer();
  const { user, system } = process.cpuUsage(before);
  return { seconds: (user + system) / 1e6, status: answer.status };
}

const plainImages = new Map<string, Promise<Buffer>>();

/** A JPEG of these sides without anything peculiar. */
function plainImage(width: number, height: number): Promise<Buffer> {
  const name = `${width}x${height}`;
  const known = plainImages.get(name);
  if (known !== undefined) return known;
  const noise = { type: 'gaussian', mean: 128, sigma: 20 } as const;
  const image = sharp({ create: { width, height, channels: 3, background: '#888', noise } })
    .jpeg()
    .toBuffer();
  plainImages.set(name, image);
  return image;
}

interface Found {
  readonly file: Buffer;
  readonly times: number;
  readonly line: string;
}

test('no file that the search finds costs several times as much as its pixels', async (t) => {
  t.timeout(((seconds || 0) + 300) * 1000);
  const service = await startService(t, {
    engine: t.context.engine,
    credits: 1e6,
    rate: 0,
    inputFormats,
  });
  const start = await corpus();
  const small = await plainImage(96, 71);
  const plainCosts = new Map<string, number>();
  const best: Found[] = [];
  const end = performance.now() + seconds * 1000;
  let done = 0;
  const isLong = !Number.isNaN(seconds);
  if (isLong) mkdirSync(folder, { recursive: true });
  for (; !isLong ? done < count : done === 0 || performance.now() < end; done++) {
    const dice = new Dice(seed + done);
    const known = best[dice.below(best.length)];
    const file = grown(dice, known && dice.oneIn(2) ? known.file : dice.of(start));
    if (file.length > mostBytes) continue;
    const role = dice.of(['image_file', 'image_file', 'bg_image_file', 'mask_file']);
    if (isLong) writeFileSync(path.join(folder, 'last'), file);
    const header = await probe(file, limits).catch(() => undefined);
    const { width, height } = header ?? { width: 96, height: 71 };
    if (width * height > 25e6 || Math.max(width, height) > 16_000) continue;
    const size = `${role} ${width}x${height}`;
    const image = role === 'mask_file' ? await plainImage(width, height) : small;
    if (!plainCosts.has(size))
      plainCosts.set(size, (await cost(service, role, await plainImage(width, height), image)).seconds);
    const measured = async () => (await cost(service, role, file, image)).seconds;
    const plain = plainCosts.get(size) ?? 0;
    const timesOf = (spent: number) => (spent + networkSeconds) / (plain + networkSeconds);
    let times = timesOf(await measured());
    // Once more, so that neither a collection of garbage nor another program counts as its cost.
    if (times > (best.at(-1)?.times ?? 0)) times = Math.min(times, timesOf(await measured()));
    best.push({
      file,
      times,
      line: `${times.toFixed(1)} × ${size}, ${file.length} bytes, seed ${seed + done}`,
    });
    best.sort((a, b) => b.times - a.times).splice(parents);
  }
  const worst = best.slice(0, reported);
  t.log(`${done} files from seed ${seed} on; the worst:\n${worst.map(({ line }) => line).join('\n')}`);
  if (isLong)
    for (const [i, { file }] of worst.entries()) writeFileSync(path.join(folder, `worst-${i + 1}`), file);
  for (const { times, line } of worst) t.true(times <= mostTimes, line);
});
