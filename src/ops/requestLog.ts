import { excerpt } from '../errors.ts';
import type { Logger } from './log.ts';
import type { Recorder } from './record.ts';

const tenth = (ms: number) => Math.round(ms * 10) / 10;

/** Probes and scrapes come every few seconds and would drown the rest. */
const isWatching = (route: string) => route.startsWith('/health/') || route === '/metrics';

/** One JSON line a request: who asked for what, how large it was, what it took and what came of it. */
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
