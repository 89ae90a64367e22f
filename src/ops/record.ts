import { excerpt } from '../errors.ts';
import type { Logger } from './log.ts';
import type { RequestAttributes, Span } from './telemetry.ts';

/** How a request ended; `gone`: its client left before it had the whole answer. */
type Outcome = 'ok' | 'invalid' | 'refused' | 'failed' | 'gone';

/** A finished request, as passed to log, metrics and traces. */
export interface RequestRecord {
  readonly requestId: string;
  readonly method: string;
  /** Pattern of its route, `/admin/v1/accounts/:id`; `none` if no route matched. */
  readonly route: string;
  /** The path as it was sent, without the query. */
  readonly path: string;
  /** 499: the client left before it had the whole answer. */
  readonly status: number;
  readonly outcome: Outcome;
  /** When it began, as in `performance.now()`. */
  readonly start: number;
  readonly ms: number;
  readonly account: string | undefined;
  readonly attributes: RequestAttributes;
  readonly spans: readonly Span[];
  /** Header `traceparent` as sent; empty if there was none. */
  readonly traceparent: string;
}

/** Called once for every request. An error it throws is logged and affects no other recorder. */
export type Recorder = (record: RequestRecord) => void;

/** The same request could have succeeded later or with more credits. */
const refusals: ReadonlySet<number> = new Set([402, 429, 503]);

export function outcomeOf(status: number): Outcome {
  if (status < 400) return 'ok';
  if (status === 499) return 'gone';
  if (refusals.has(status)) return 'refused';
  return status < 500 ? 'invalid' : 'failed';
}

const tenth = (ms: number) => Math.round(ms * 10) / 10;

/** Probes and scrapes repeat every few seconds and are neither logged nor traced. */
export const isWatching = (route: string) => route.startsWith('/health/') || route === '/metrics';

/** One JSON line per request: account, size, stages and outcome. */
export const requestLog =
  (logger: Logger): Recorder =>
  ({ requestId, method, route, path, status, outcome, ms, account, attributes, spans }) => {
    const stages: Record<string, number> = {};
    for (const span of spans) stages[span.stage] = tenth((stages[span.stage] ?? 0) + span.ms);
    logger[isWatching(route) ? 'debug' : 'info']({
      request: requestId,
      method,
      path: excerpt(path, 200),
      status,
      outcome,
      ms: tenth(ms),
      account,
      ...attributes,
      ...(spans.length > 0 && { stages }),
    });
  };
