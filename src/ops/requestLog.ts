import { excerpt } from '../errors.ts';
import type { Logger } from './log.ts';
import type { Recorder } from './record.ts';

const tenth = (ms: number) => Math.round(ms * 10) / 10;

/** Probes and scrapes repeat every few seconds and are not logged. */
const isWatching = (route: string) => route.startsWith('/health/') || route === '/metrics';

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
