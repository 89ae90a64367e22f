import type { RequestAttributes, Span } from './telemetry.ts';

/** How a request ended, in one word; `gone`: its client left before it had the whole answer. */
export type Outcome = 'ok' | 'invalid' | 'refused' | 'failed' | 'gone';

/** A request that is worked off, as the log, the metrics and the traces tell of it. */
export interface RequestRecord {
  readonly requestId: string;
  readonly method: string;
  /** Pattern of the route that took it, `/admin/v1/accounts/:id`; `none` where there was none. */
  readonly route: string;
  /** As it was sent, without the query. */
  readonly path: string;
  /** 499: the client went away before it had the whole answer. */
  readonly status: number;
  readonly outcome: Outcome;
  /** As `performance.now()` counts. */
  readonly start: number;
  readonly ms: number;
  readonly account: string | undefined;
  readonly attributes: RequestAttributes;
  readonly spans: readonly Span[];
  /** Header `traceparent`, as it was sent; empty when it was not. */
  readonly traceparent: string;
}

/** Hears of every request once. What it throws is logged and concerns no other. */
export type Recorder = (record: RequestRecord) => void;

/** Asking again, later or with more credits, would have got an answer. */
const refusals: ReadonlySet<number> = new Set([402, 429, 503]);

export function outcomeOf(status: number): Outcome {
  if (status < 400) return 'ok';
  if (status === 499) return 'gone';
  if (refusals.has(status)) return 'refused';
  return status < 500 ? 'invalid' : 'failed';
}
