import { availableParallelism } from 'node:os';
import { type Command, Option } from 'commander';
import { type BareSetting, bareRuns } from './lib/bare.ts';
import { expectOk } from './lib/client.ts';
import { type BenchCommand, type Context, type Shared, values } from './lib/command.ts';
import { openImages } from './lib/images.ts';
import { closedLoop, type OpenPlan, openLoop, type Send } from './lib/load/generate.ts';
import { heldRate, nextRate, type Step, type Summary, summarise } from './lib/load/summary.ts';
import { computed, type Figure, type Outcome, type Part } from './lib/outcome.ts';
import { usedNetwork } from './lib/paths.ts';
import { mean, median, quantile } from './lib/stats.ts';
import { openTarget } from './lib/target.ts';

interface LoadOptions extends Shared {
  readonly mp: number;
  readonly size: string;
  readonly format: string;
  readonly parallel: readonly number[];
  readonly rates: readonly number[];
  readonly arrivals: OpenPlan['arrivals'];
  readonly search: number;
  readonly limit?: number;
  readonly burst?: number;
  readonly bare: boolean;
}

export const command: BenchCommand = {
  name: 'load',
  title: 'Load',
  summary: 'closed and open loops: latency percentiles, the rate that is held, refusals by code',
  shared: { seconds: 20, target: true, images: true },
  options: (command: Command) =>
    command
      .option('--mp <n>', 'megapixels of the upload', values.number, 1)
      .option('--size <size>', 'of the result', 'full')
      .option('--format <format>', 'of the result', 'png')
      .option('--parallel <list>', 'callers of the closed loops', values.wholes, [1, 2, 4, 8])
      .option(
        '--rates <list>',
        'of the open loops, as parts of the best closed loop',
        values.numbers,
        [0.3, 0.5, 0.7, 0.85, 1, 1.2],
      )
      .addOption(
        new Option('--arrivals <kind>', 'of the open loops').choices(['random', 'even']).default('random'),
      )
      .option('--search <n>', 'more open loops, to close in on the rate that is held', values.whole, 2)
      .option('--limit <ms>', 'p95 of a rate that is held (default: 4 times one caller alone)', values.number)
      .option('--burst <n>', 'send so many at once and count what comes back', values.whole)
      .option('--bare', 'also: bare runs of the network, and what part of them is served', false),
  all: { full: { bare: true }, quick: { parallel: [1, 4], rates: [0.5, 0.9], search: 1, seconds: 10 } },
};

interface Closed {
  readonly parallel: number;
  readonly summary: Summary;
}

interface Bare extends BareSetting {
  readonly perSecond: number;
}

interface Measured {
  readonly server: string;
  readonly closed: readonly Closed[];
  /** Best closed loop, results per second. */
  readonly capacity: number;
  readonly limit: number;
  readonly open: readonly Step[];
  readonly burst?: Summary;
  readonly bare: readonly Bare[];
}

async function openLoops(
  { rates, arrivals, seconds, search }: LoadOptions,
  { capacity, limit }: { readonly capacity: number; readonly limit: number },
  send: Send,
  { progress }: Context,
): Promise<readonly Step[]> {
  const steps: Step[] = [];
  const measure = async (perSecond: number) => {
    progress(`open loop, ${perSecond.toFixed(2)} a second`);
    // Long enough for the backlog of an overload of this length, and bounded.
    const plan = { perSecond, seconds, arrivals, drainSeconds: 2 * seconds + limit / 1000 };
    steps.push({ perSecond, summary: summarise(await openLoop(plan, send)) });
  };
  for (const rate of rates) await measure(rate * capacity);
  for (let more = 0; more < search; more++) {
    const rate = nextRate(steps, limit);
    if (rate === undefined || rate <= 0) break;
    await measure(rate);
  }
  return steps.sort((a, b) => a.perSecond - b.perSecond);
}

/** Runs of the network as the server makes them; each setting is a process of its own. */
async function bareSettings(seconds: number, { progress }: Context): Promise<readonly Bare[]> {
  const cores = availableParallelism();
  const settings: readonly BareSetting[] = [
    { processes: 1, threads: cores },
    { processes: cores, threads: 1 },
    { processes: 2, threads: cores },
  ];
  const runs: Bare[] = [];
  for (const setting of settings) {
    progress(`bare runs, ${setting.processes} x ${setting.threads}`);
    runs.push({
      ...setting,
      perSecond: (await bareRuns('engine', usedNetwork(), { ...setting, seconds })).perSecond,
    });
  }
  return runs;
}

/** Of what was measured before and after the server, so that a drift of the machine counts half. */
const meanOf = (before: readonly Bare[], after: readonly Bare[]): readonly Bare[] =>
  before.map((one, at) => ({
    ...one,
    perSecond: mean([one.perSecond, after[at]?.perSecond ?? Number.NaN]),
  }));

async function measureLoad(options: LoadOptions, context: Context): Promise<Measured> {
  const { mp, size, format, parallel, seconds, images, burst } = options;
  const { progress } = context;
  const image = await openImages(images).jpeg(mp);
  const before = options.bare ? await bareSettings(seconds, context) : [];
  const target = await openTarget(options);
  let closed: readonly Closed[] = [];
  let measured: Omit<Measured, 'bare'>;
  try {
    const send: Send = async () => (await target.client.cutout(image, { size, format })).code;
    progress('warming up');
    expectOk(await target.client.cutout(image, { size, format }));
    for (const callers of parallel) {
      progress(`closed loop, ${callers} callers`);
      const samples = await closedLoop({ parallel: callers, seconds }, send);
      closed = [...closed, { parallel: callers, summary: summarise(samples) }];
    }
    const capacity = Math.max(...closed.map(({ summary }) => summary.perSecond));
    if (!(capacity > 0)) throw new Error('no closed loop got a result');
    const limit = options.limit ?? 4 * (closed[0]?.summary.p50 ?? 0);
    const open = await openLoops(options, { capacity, limit }, send, context);
    if (burst !== undefined) progress(`${burst} at once`);
    const flood =
      burst &&
      summarise(
        await openLoop({ perSecond: burst * 1e3, seconds: 1e-3, arrivals: 'even', drainSeconds: 300 }, send),
      );
    measured = { server: target.server, closed, capacity, limit, open, ...(flood && { burst: flood }) };
  } finally {
    await target.close();
  }
  const after = options.bare ? await bareSettings(seconds, context) : [];
  return { ...measured, bare: meanOf(before, after) };
}

const codesText = (codes: Summary['codes']): string =>
  Object.entries(codes)
    .map(([code, count]) => `${count} ${code}`)
    .join(', ');

const summaryCells = ({ sent, perSecond, p50, p90, p95, p99, max, codes }: Summary) => [
  sent,
  perSecond,
  p50,
  p90,
  p95,
  p99,
  max,
  codesText(codes),
];

const SUMMARY_COLUMNS = [
  'sent',
  'results a second',
  'p50 ms',
  'p90 ms',
  'p95 ms',
  'p99 ms',
  'max ms',
  'answers',
];

function tables({ closed, open, burst, bare }: Measured): readonly Part[] {
  const more: Part[] = [];
  if (burst)
    more.push({
      kind: 'table',
      title: 'All at once',
      columns: SUMMARY_COLUMNS,
      rows: [summaryCells(burst)],
      note: 'Percentiles are of those that got a result.',
    });
  if (bare.length > 0)
    more.push({
      kind: 'table',
      title: 'Runs of the network, nothing else',
      columns: ['processes', 'threads', 'runs a second'],
      rows: bare.map(({ processes, threads, perSecond }) => [processes, threads, perSecond]),
    });
  return [
    {
      kind: 'table',
      title: 'Closed loop: callers that wait for their answer',
      columns: ['callers', ...SUMMARY_COLUMNS],
      rows: closed.map(({ parallel, summary }) => [parallel, ...summaryCells(summary)]),
    },
    {
      kind: 'table',
      title: 'Open loop: callers that do not know of each other',
      columns: ['a second', ...SUMMARY_COLUMNS],
      rows: open.map(({ perSecond, summary }) => [perSecond, ...summaryCells(summary)]),
      note: 'Latencies count from the moment a request was due, waiting behind others included.',
    },
    ...more,
  ];
}

const PERCENTILES = [0, 10, 25, 50, 75, 90, 95, 97.5, 99, 99.9];

/** Only percentiles that the number of samples supports. */
const curve = (latencies: readonly number[]): readonly (readonly [number, number])[] =>
  PERCENTILES.filter((percentile) => percentile <= 100 * (1 - 1 / Math.max(2, latencies.length))).map(
    (percentile) => [percentile, quantile(latencies, percentile / 100)],
  );

function plots({ closed, open, capacity, limit }: Measured): readonly Part[] {
  const codes = [
    ...new Set(
      [...open.map(({ summary }) => summary), ...closed.map(({ summary }) => summary)].flatMap(
        ({ codes: own }) => Object.keys(own),
      ),
    ),
  ];
  const against = (of: (summary: Summary) => number) =>
    open
      .map(({ perSecond, summary }) => [perSecond, of(summary)] as const)
      .filter(([, value]) => Number.isFinite(value));
  return [
    {
      kind: 'lines',
      title: 'Latency against rate',
      x: { label: 'requests a second' },
      y: { label: 'ms until the result', scale: 'log' },
      series: [
        { name: 'p50', points: against(({ p50 }) => p50), dots: true },
        { name: 'p95', points: against(({ p95 }) => p95), dots: true },
        { name: 'slowest', points: against(({ max }) => max), dots: true },
      ],
      marks: [
        { axis: 'x', at: capacity, label: 'best closed loop' },
        { axis: 'y', at: limit, label: 'limit of p95' },
      ],
    },
    {
      kind: 'lines',
      title: 'Latency percentiles at each rate',
      x: { label: 'percentile', scale: 'percentile' },
      y: { label: 'ms until the result' },
      series: open.map(({ perSecond, summary }) => ({
        name: `${perSecond.toFixed(2)} a second`,
        points: curve(summary.latencies),
      })),
      note: 'A percentile is drawn where there are enough requests to tell it.',
    },
    {
      kind: 'lines',
      title: 'Results a second against callers',
      x: { label: 'callers that wait' },
      y: { label: 'results a second' },
      series: [
        {
          name: 'results a second',
          points: closed.map(({ parallel, summary }) => [parallel, summary.perSecond] as const),
          dots: true,
        },
      ],
    },
    ...(codes.some((code) => code !== 'ok')
      ? ([
          {
            kind: 'stacked',
            title: 'What came back in the open loops',
            unit: '',
            parts: codes,
            rows: open.map(({ perSecond, summary }) => ({
              label: `${perSecond.toFixed(2)} a second`,
              values: codes.map((code) => summary.codes[code] ?? 0),
            })),
          },
        ] as const)
      : []),
  ];
}

function figuresOf({ closed, open, capacity, limit, bare }: Measured): readonly Figure[] {
  const best = Math.max(0, ...bare.map(({ perSecond }) => perSecond));
  const settled = open.filter(({ perSecond }) => perSecond <= heldRate(open, limit)).at(-1);
  return [
    computed('load.capacity', 'results a second, best closed loop', '1/s', capacity),
    computed(
      'load.held',
      `rate held (p95 at most ${Math.round(limit)} ms, all answered)`,
      '1/s',
      heldRate(open, limit),
    ),
    ...(settled
      ? [
          computed('load.held.p50', 'p50 at that rate', 'ms', settled.summary.p50),
          computed('load.held.p95', 'p95 at that rate', 'ms', settled.summary.p95),
        ]
      : []),
    ...(best > 0
      ? [
          computed(
            'load.over_bare',
            'served over bare runs of the network in their best setting',
            '×',
            capacity / best,
            { atLeast: 0.92 },
          ),
        ]
      : []),
    ...closed.map(({ parallel, summary }) =>
      computed(`load.closed.${parallel}.p50`, `${parallel} callers, p50`, 'ms', median(summary.latencies)),
    ),
  ];
}

export async function run(options: LoadOptions, context: Context): Promise<Outcome> {
  const measured = await measureLoad(options, context);
  const { mp, size, format, arrivals, seconds } = options;
  return {
    settings: {
      server: measured.server,
      upload: `${mp} MP`,
      size,
      format,
      arrivals,
      'seconds a step': seconds,
    },
    figures: figuresOf(measured),
    parts: [...plots(measured), ...tables(measured)],
    notes: ['Client and server share the machine unless --url names another one.'],
  };
}
