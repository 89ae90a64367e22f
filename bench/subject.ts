import { availableParallelism } from 'node:os';
import { jsonLines } from './lib/child.ts';
import type { BenchCommand, Context, Shared } from './lib/command.ts';
import { computed, measured, type Outcome } from './lib/outcome.ts';
import { childScript, modelsFolder, usedNetwork } from './lib/paths.ts';
import { median } from './lib/stats.ts';

export const command: BenchCommand = {
  name: 'subject',
  title: 'Subject types',
  summary:
    'what type=auto costs: detector, statistics and head by themselves, and a matte with and without them',
  shared: { rounds: 10 },
  all: { quick: { rounds: 3 } },
};

/** One per run, in milliseconds. */
interface Times {
  readonly ms: readonly number[];
  readonly processor: readonly number[];
}

/** Output of subjectRun.ts. */
interface SubjectRun {
  readonly described: Times;
  readonly plain: Times;
  readonly classified: Times;
}

/** Additional time of a matte with classification: the median of the differences of neighbouring runs. */
export const longer = (without: readonly number[], having: readonly number[]): number =>
  median(having.map((ms, at) => ms - (without[at] ?? Number.NaN)));

/** One thread, and as many as there are cores; each in a new process. The goal is for two cores. */
export async function run({ rounds }: Shared, { progress }: Context): Promise<Outcome> {
  const counts = [...new Set([1, availableParallelism()])];
  const runs: (SubjectRun & { readonly threads: number })[] = [];
  for (const threads of counts) {
    progress(`${threads} threads`);
    const args = [modelsFolder(), usedNetwork(), threads, rounds];
    const [result] = await jsonLines(childScript('subjectRun.js'), args);
    runs.push({ threads, ...(result as SubjectRun) });
  }
  return {
    settings: { rounds },
    figures: runs.flatMap(({ threads, described, plain, classified }) => {
      const [name, title] = [`subject.${threads}threads`, `${threads} threads`];
      const goal = threads === 2 ? { atMost: 35 } : undefined;
      return [
        measured(`${name}.described`, `described by itself, ${title}`, 'ms', described.ms, goal),
        computed(
          `${name}.longer`,
          `a matte with the type takes longer by, ${title}`,
          'ms',
          longer(plain.ms, classified.ms),
        ),
      ];
    }),
    parts: [
      {
        kind: 'table',
        title: 'Milliseconds, and processor milliseconds, of an image of 1024 x 1024',
        columns: [
          'threads',
          ...['described', 'its processor', 'matte', 'its processor', 'with type', 'its processor'],
          'longer by',
        ],
        rows: runs.map(({ threads, described, plain, classified }) => [
          threads,
          ...[described, plain, classified].flatMap(({ ms, processor }) => [median(ms), median(processor)]),
          longer(plain.ms, classified.ms),
        ]),
        note: 'longer by: the middle of the differences of neighbouring runs.',
      },
    ],
  };
}
