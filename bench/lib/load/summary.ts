import { quantile, tally } from '../stats.ts';
import type { Sample } from './generate.ts';

export interface Summary {
  readonly sent: number;
  readonly ok: number;
  /** Answers with a result per second, until the last answer. */
  readonly perSecond: number;
  /** Number of answers by code. */
  readonly codes: Readonly<Record<string, number>>;
  /** Milliseconds from a request's scheduled time to its result; NaN without one. */
  readonly p50: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  /** All of them, for plots. */
  readonly latencies: readonly number[];
}

/**
 * Latencies are those of requests that got a result and of those that got no answer at all (`unfinished`, with the
 * time they had waited, a lower bound). Refusals are counted, not timed: a fast refusal is not a fast answer.
 */
export function summarise(samples: readonly Sample[]): Summary {
  const timed = samples.filter(({ code }) => code === 'ok' || code === 'unfinished');
  const latencies = timed.map(({ due, done }) => done - due).sort((a, b) => a - b);
  const ok = samples.filter(({ code }) => code === 'ok').length;
  const end = Math.max(0, ...samples.map(({ done }) => done));
  return {
    sent: samples.length,
    ok,
    perSecond: end > 0 ? (1000 * ok) / end : 0,
    codes: tally(samples.map(({ code }) => code)),
    p50: quantile(latencies, 0.5),
    p90: quantile(latencies, 0.9),
    p95: quantile(latencies, 0.95),
    p99: quantile(latencies, 0.99),
    max: quantile(latencies, 1),
    latencies,
  };
}

/** A rate is sustained if every request got a result and 95 of 100 got it within the limit. */
const isHeld = ({ sent, ok, p95 }: Summary, limitMs: number): boolean => ok === sent && p95 <= limitMs;

export interface Step {
  readonly perSecond: number;
  readonly summary: Summary;
}

/**
 * The highest sustained rate below the lowest missed one: 0 if there is none. A rate sustained by chance above a
 * missed one does not count.
 */
export function heldRate(steps: readonly Step[], limitMs: number): number {
  const sorted = [...steps].sort((a, b) => a.perSecond - b.perSecond);
  const firstMissed = sorted.findIndex(({ summary }) => !isHeld(summary, limitMs));
  const held = firstMissed === -1 ? sorted : sorted.slice(0, firstMissed);
  return held.at(-1)?.perSecond ?? 0;
}

/** Next rate to try: between the highest sustained and the lowest missed one; undefined when the search is done. */
export function nextRate(steps: readonly Step[], limitMs: number): number | undefined {
  const held = heldRate(steps, limitMs);
  const missed = Math.min(
    ...steps.filter(({ summary }) => !isHeld(summary, limitMs)).map(({ perSecond }) => perSecond),
  );
  if (missed === Number.POSITIVE_INFINITY) return held * 1.3;
  return missed / Math.max(held, 1e-9) < 1.05 ? undefined : (held + missed) / 2;
}
