import type { Command } from 'commander';
import { expectOk } from './lib/client.ts';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { openImages } from './lib/images.ts';
import { computed, type Outcome } from './lib/outcome.ts';
import { median } from './lib/stats.ts';
import { openTarget } from './lib/target.ts';

interface PreviewOptions extends Shared {
  readonly mp: number;
}

export const command: BenchCommand = {
  name: 'preview',
  title: 'Previews against full results',
  summary:
    'a preview and the full result of every photograph, in turn: which part of the time a preview takes',
  shared: { rounds: 3, seconds: 240, target: true, images: true },
  options: (command: Command) => command.option('--mp <n>', 'megapixels of the uploads', values.number, 4),
  all: { quick: { rounds: 1 } },
};

const GOAL = 0.5;

/**
 * A photograph with an ambiguous matte at the small size runs twice (decision 0098), so photographs
 * are measured individually: give a folder of typical ones.
 */
export async function run(options: PreviewOptions, { progress }: Context): Promise<Outcome> {
  const { mp, rounds, seconds, images } = options;
  const imageSet = openImages(images);
  const { client, server, close } = await openTarget(options);
  const photos = imageSet.names.map((name) => ({
    name,
    preview: [] as number[],
    full: [] as number[],
    run: [] as number[],
  }));
  let done = 0;
  try {
    const begin = performance.now();
    const inTime = () => performance.now() - begin < seconds * 1000;
    expectOk(await client.cutout(await imageSet.jpeg(mp), { size: 'preview', format: 'png' }));
    for (; done < rounds && (done === 0 || inTime()); done++) {
      for (const { name, preview, full, run: runs } of photos) {
        progress(`round ${done + 1} of ${rounds}, ${name}`);
        const upload = await imageSet.jpeg(mp, name);
        const answer = expectOk(await client.cutout(upload, { size: 'preview', format: 'png' }));
        preview.push(answer.ms);
        runs.push(answer.stages['infer'] ?? 0);
        full.push(expectOk(await client.cutout(upload, { size: 'full', format: 'png' })).ms);
      }
    }
  } finally {
    await close();
  }
  const rows = photos
    .map(({ name, preview, full, run: runs }) => ({
      name,
      preview: median(preview),
      run: median(runs),
      full: median(full),
      ratio: median(preview) / median(full),
    }))
    .sort((a, b) => a.ratio - b.ratio);
  const ratios = rows.map(({ ratio }) => ratio);
  const within = ratios.filter((ratio) => ratio <= GOAL).length / ratios.length;
  return {
    settings: { server, photographs: rows.length, megapixels: mp, 'rounds done': done },
    figures: [
      computed('preview.over_full', 'preview against full size, median photograph', '×', median(ratios), {
        atMost: GOAL,
      }),
      computed('preview.worst', 'preview against full size, slowest photograph', '×', Math.max(...ratios)),
      computed('preview.within', `share of photographs within ${GOAL}`, '', within),
    ],
    parts: [
      {
        kind: 'table',
        title: 'Previews and full results, milliseconds',
        columns: ['photograph', 'preview', 'network in it', 'full', 'preview / full'],
        rows: rows.map((row) => [row.name, row.preview, row.run, row.full, row.ratio]),
        note: 'Whole requests, medians of the rounds. Where the network in a preview takes as long as in a full result, it ran twice.',
      },
      {
        kind: 'bars',
        title: 'Part of the full result’s time',
        unit: '×',
        bars: rows.map(({ name, ratio }) => ({ label: name, value: ratio })),
      },
    ],
  };
}
