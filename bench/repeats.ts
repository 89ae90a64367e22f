import type { Command } from 'commander';
import { expectOk } from './lib/client.ts';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { drawnJpeg } from './lib/images.ts';
import { measured, type Outcome } from './lib/outcome.ts';
import { memory, processorMs } from './lib/server.ts';
import { median, quantile } from './lib/stats.ts';
import { openTarget } from './lib/target.ts';

interface RepeatsOptions extends Shared {
  readonly mp: readonly number[];
  readonly parallel: number;
}

export const command: BenchCommand = {
  name: 'repeats',
  title: 'Repeated requests',
  summary: 'requests answered from kept results: how many a second, and what each costs the server',
  shared: { seconds: 5 },
  options: (command: Command) =>
    command
      .option('--mp <list>', 'megapixels of the uploads', values.numbers, [0.06, 1])
      .option('--parallel <n>', 'requests at once', values.whole, 100),
  all: {},
};

/** Client and server share the machine; the client takes the smaller part. */
export async function run(
  { mp, parallel, seconds }: RepeatsOptions,
  { progress }: Context,
): Promise<Outcome> {
  const { client, pid = 0, close } = await openTarget({}, { CUTOUT_LOG_LEVEL: 'info' });
  const rows: {
    mp: number;
    by: string;
    upload: number;
    perSecond: number;
    each: number;
    times: number[];
    mb: number;
  }[] = [];
  try {
    for (const megapixels of mp) {
      const image = await drawnJpeg(megapixels);
      for (const by of ['image', 'key']) {
        progress(`${megapixels} MP, same ${by}`);
        const fields = { size: 'preview', format: 'jpg' };
        const options = { same: true, ...(by === 'key' && { idempotencyKey: `bench-${megapixels}` }) };
        const post = () => client.cutout(image, fields, options);
        expectOk(await post());
        const times: number[] = [];
        const used = await processorMs(pid);
        const begin = performance.now();
        const worker = async () => {
          while (performance.now() - begin < seconds * 1000) {
            const { ms, replayed } = expectOk(await post());
            if (!replayed) throw new Error('not a repeat');
            times.push(ms);
          }
        };
        await Promise.all(Array.from({ length: parallel }, worker));
        const elapsed = performance.now() - begin;
        rows.push({
          mp: megapixels,
          by,
          upload: image.length / 1000,
          perSecond: (1000 * times.length) / elapsed,
          each: ((await processorMs(pid)) - used) / times.length,
          times,
          mb: (await memory(pid)).now,
        });
      }
    }
  } finally {
    await close();
  }
  return {
    settings: { parallel, seconds },
    figures: rows.map(({ mp: megapixels, by, times }) =>
      measured(`repeats.${megapixels}mp.${by}`, `repeat by ${by}, ${megapixels} MP`, 'ms', [median(times)]),
    ),
    parts: [
      {
        kind: 'table',
        title: 'Repeats',
        columns: [
          'MP',
          'same',
          'upload kB',
          'repeats a second',
          'server ms each',
          'median ms',
          'p99 ms',
          'server MB',
        ],
        rows: rows.map((row) => [
          row.mp,
          row.by,
          row.upload,
          row.perSecond,
          row.each,
          median(row.times),
          quantile(row.times, 0.99),
          row.mb,
        ]),
      },
    ],
  };
}
