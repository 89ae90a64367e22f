import { quantile, tally } from '../stats.ts';
import type { Sample } from './generate.ts';

export interface Summary {
  readonly sent: number;
  readonly ok: number;
  /** Answers with a result, a second, until the last answer. */
  readonly perSecond: number;
  /** How often each code came. */
  readonly codes: Readonly<Record<string, number>>;
  /** Milliseconds from when a request was due to its result; NaN where there was none. */
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
 * time they had waited: the truth is longer). Refusals are counted, not timed: a quick "no" is not a quick answer.
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

/** A rate is held when every request got a result and 95 of 100 got it within the limit. */
const isHeld = ({ sent, ok, p95 }: Summary, limitMs: number): boolean => ok === sent && p95 <= limitMs;

export interface Step {
  readonly perSecond: number;
  readonly summary: Summary;
}

/**
 * The highest rate that is held, below the lowest that is not: 0 when none is. A rate that is held by luck above one
 * that is not does not count.
 */
export function heldRate(steps: readonly Step[], limitMs: number): number {
  const sorted = [...steps].sort((a, b) => a.perSecond - b.perSecond);
  const firstMissed = sorted.findIndex(({ summary }) => !isHeld(summary, limitMs));
  const held = firstMissed === -1 ? sorted : sorted.slice(0, firstMissed);
  return held.at(-1)?.perSecond ?? 0;
}

/** Where to look next: between the highest rate held and the lowest missed; undefined when that is settled. */
export function nextRate(steps: readonly Step[], limitMs: number): number | undefined {
  const held = heldRate(steps, limitMs);
  const missed = Math.min(
    ...steps.filter(({ summary }) => !isHeld(summary, limitMs)).map(({ perSecond }) => perSecond),
  );
  if (missed === Number.POSITIVE_INFINITY) return held * 1.3;
  return missed / Math.max(held, 1e-9) < 1.05 ? undefined : (held + missed) / 2;
}
