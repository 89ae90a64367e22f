import { availableParallelism } from 'node:os';
import { jsonLines } from './lib/child.ts';
import type { BenchCommand, Context, Shared } from './lib/command.ts';
import { measured, type Outcome } from './lib/outcome.ts';
import { childScript, usedNetwork } from './lib/paths.ts';
import { median } from './lib/stats.ts';

export const command: BenchCommand = {
  name: 'threads',
  title: 'Workers and threads',
  summary: 'how to share out the cores: one run alone and eight at once for each setting',
  shared: { rounds: 3 },
  all: { full: { rounds: 1 } },
};

export const PARALLEL = 8;

interface ThreadSetting {
  readonly workers: number;
  readonly intraOpThreads: number;
}

interface ThreadRun {
  readonly loadMs: number;
  readonly warmUpMs: number;
  /** Milliseconds of sequential runs. */
  readonly alone: readonly number[];
  /** Milliseconds and processor milliseconds per image, `PARALLEL` concurrently. */
  readonly together: number;
  readonly processor: number;
  /** MB. */
  readonly peak: number;
}

/** Combinations of workers × threads worth trying on that many cores. */
function settings(cores: number): readonly ThreadSetting[] {
  const tried = new Map<string, ThreadSetting>();
  for (const workers of [1, 2, 4, 8].filter((n) => n <= Math.max(2, cores))) {
    for (const threads of [Math.ceil(cores / workers), cores])
      tried.set(`${workers} x ${threads}`, { workers, intraOpThreads: threads });
  }
  return [...tried.values()];
}

/**
 * The image is tiny, so the figures are ONNX Runtime's and the engine's overhead. Every setting gets a
 * new process: the memory is its peak.
 */
export async function run({ rounds }: Shared, { progress }: Context): Promise<Outcome> {
  const rows: (ThreadSetting & ThreadRun & { readonly name: string })[] = [];
  for (const setting of settings(availableParallelism())) {
    const name = `${setting.workers} x ${setting.intraOpThreads}`;
    progress(name);
    const [result] = await jsonLines(childScript('threadsRun.js'), [
      usedNetwork(),
      setting.workers,
      setting.intraOpThreads,
      rounds,
      PARALLEL,
    ]);
    rows.push({ name, ...setting, ...(result as ThreadRun) });
  }
  return {
    settings: { rounds, parallel: PARALLEL },
    figures: rows.map(({ name, alone }) =>
      measured(`threads.${name.replaceAll(' ', '')}.alone`, `${name}, alone`, 'ms', alone),
    ),
    parts: [
      {
        kind: 'table',
        title: 'Workers x threads',
        columns: [
          'setting',
          'open ms',
          'first run ms',
          'one alone ms',
          `ms an image, ${PARALLEL} at once`,
          'processor ms an image',
          'peak MB',
        ],
        rows: rows.map((row) => [
          row.name,
          row.loadMs,
          row.warmUpMs,
          median(row.alone),
          row.together,
          row.processor,
          row.peak,
        ]),
      },
      {
        kind: 'bars',
        title: 'Milliseconds an image',
        unit: 'ms',
        bars: rows.flatMap(({ name, alone, together }) => [
          { label: `${name}, alone`, value: median(alone), series: 'alone' },
          { label: `${name}, ${PARALLEL} at once`, value: together, series: `${PARALLEL} at once` },
        ]),
      },
    ],
  };
}
