import type { Output } from '../modelsProgress.ts';
import { newProgressBar } from '../progressBar.ts';
import { table } from '../table.ts';
import type { Difference, Means } from './compare.ts';
import type { Observation } from './observe.ts';

/** What became of a request at one service: an answer, or a sentence that says why there is none. */
export type Outcome = Observation | { readonly unanswered: string };

export interface Row {
  readonly request: string;
  readonly here: Outcome;
  readonly there: Outcome;
  readonly means: Means;
}

export interface Report {
  readonly here: string;
  readonly there: string;
  readonly rows: readonly Row[];
  readonly differences: readonly Difference[];
  /** Why the other requests were not sent. */
  readonly stopped?: string;
}

const isAnswer = (outcome: Outcome): outcome is Observation => 'status' in outcome;

/** Longest text of a cell. */
const maxCell = 70;

const cell = (text: string) => (text.length > maxCell ? `${text.slice(0, maxCell - 1)}…` : text);

const both = (one: string, other: string) => (one === other ? one : `${one} / ${other}`);

function resultText(outcome: Outcome): string {
  if (!isAnswer(outcome)) return 'no answer';
  const { error, image, parts, contentType, unreadable } = outcome;
  if (error) return error.codes === 'absent' ? error.titles : error.codes;
  if (unreadable !== undefined) return `unreadable ${contentType}`;
  return image ? `${image.format} ${image.width}x${image.height} ${image.channels}` : (parts ?? contentType);
}

const statusText = (outcome: Outcome) => (isAnswer(outcome) ? String(outcome.status) : '–');
const secondsText = (outcome: Outcome) => (isAnswer(outcome) ? (outcome.ms / 1000).toFixed(2) : '–');

const meansText = ({ alpha, colour }: Means) =>
  alpha !== undefined
    ? `alpha ${alpha.toFixed(1)}`
    : colour !== undefined
      ? `colours ${colour.toFixed(1)}`
      : '';

/** Credits as the services report them. */
const charged = (rows: readonly Row[], side: 'here' | 'there'): number =>
  rows.reduce((sum, row) => {
    const outcome = row[side];
    const value = isAnswer(outcome) ? Number(outcome.headers.get('X-Credits-Charged') ?? 0) : 0;
    return sum + (Number.isFinite(value) ? value : 0);
  }, 0);

const requestsText = (names: readonly string[]) =>
  names.length <= 3 ? names.join(', ') : `${names.slice(0, 2).join(', ')} and ${names.length - 2} more`;

/** One row for each difference, with the requests that show it. */
function grouped(differences: readonly Difference[]): string[][] {
  const groups = new Map<string, { cells: string[]; requests: string[] }>();
  for (const { request, what, here, there } of differences) {
    const id = JSON.stringify([what, here, there]);
    const group = groups.get(id) ?? { cells: [what, here, there], requests: [] };
    group.requests.push(request);
    groups.set(id, group);
  }
  return [...groups.values()].map(({ cells, requests }) => [
    `  ${cells[0]}`,
    ...cells.slice(1).map(cell),
    requestsText(requests),
  ]);
}

function section(title: string, differences: readonly Difference[]): string[] {
  if (differences.length === 0) return [];
  const rows = grouped(differences);
  return [`${title}\n${table([['  WHAT', 'HERE', 'THERE', 'REQUESTS'], ...rows])}`];
}

export function describeReport({ here, there, rows, differences, stopped }: Report): string {
  const of = (kind: Difference['kind']) => differences.filter((each) => each.kind === kind);
  const contract = of('contract');
  const lines = rows.map((row) => [
    row.request,
    both(statusText(row.here), statusText(row.there)),
    `${secondsText(row.here)} / ${secondsText(row.there)}`,
    cell(both(resultText(row.here), resultText(row.there))),
    meansText(row.means),
  ]);
  const unanswered = rows.flatMap(({ request, here: one, there: other }) =>
    [one, other].flatMap((outcome) => (isAnswer(outcome) ? [] : [`${request}: ${outcome.unanswered}\n`])),
  );
  return [
    `Here:  ${here}\nThere: ${there}\n`,
    table([['REQUEST', 'STATUS', 'SECONDS', 'ANSWER', 'MEAN DIFFERENCE (OF 255)'], ...lines]),
    ...(unanswered.length > 0 ? [unanswered.join('')] : []),
    ...section('Differences that a client can notice:', contract),
    ...section('Other differences, which services may decide themselves:', of('other')),
    ...(stopped === undefined ? [] : [`Stopped: ${stopped}\n`]),
    `Charged, as the answers say: ${charged(rows, 'here')} credits here, ${charged(rows, 'there')} there.\n${verdict(contract.length)}\n`,
  ].join('\n');
}

const verdict = (count: number) =>
  count === 0
    ? 'No difference that a client can notice.'
    : `${count} ${count === 1 ? 'difference' : 'differences'} that a client can notice.`;

const outcomeJson = (outcome: Outcome) => {
  if (!isAnswer(outcome)) return outcome;
  const { status, ms, contentType, headers, error, parts, image, unreadable } = outcome;
  const named = [...headers].filter(([name]) => name.startsWith('x-') || name === 'retry-after');
  return {
    status,
    ms: Math.round(ms),
    contentType,
    headers: Object.fromEntries(named),
    error,
    parts,
    image,
    unreadable,
  };
};

/** The report for programs. */
export const jsonReport = (report: Report) => ({
  here: report.here,
  there: report.there,
  requests: report.rows.map(({ request, here, there, means }) => ({
    request,
    here: outcomeJson(here),
    there: outcomeJson(there),
    meanDifference: means,
  })),
  differences: report.differences,
  charged: { here: charged(report.rows, 'here'), there: charged(report.rows, 'there') },
  ...(report.stopped !== undefined && { stopped: report.stopped }),
});

/** Lines where there is no terminal: one for so many requests. */
const linesEvery = 10;

interface CheckProgress {
  step(): void;
  stop(): void;
}

/** Progress over `total` requests: a bar on a terminal, elsewhere a line for every tenth request. */
export function checkProgress(out: Output, total: number): CheckProgress {
  if (!out.isTTY) {
    let steps = 0;
    const step = () => {
      steps += 1;
      if (steps % linesEvery === 0 && steps < total) out.write(`${steps} of ${total} requests\n`);
    };
    return { step, stop: () => {} };
  }
  const bar = newProgressBar(out, '{bar} {value} of {total} requests | {eta_formatted} left');
  bar.start(total, 0);
  return { step: () => bar.increment(), stop: () => bar.stop() };
}
