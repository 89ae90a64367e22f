import { outcomeOf, type Recorder } from '../../ops/record.ts';
import type { Middleware } from '../context.ts';
import { onceEnded } from '../ended.ts';

/** Tells the recorders of a request when it is worked off and its answer is out or its connection broken. */
export const record =
  (recorders: readonly Recorder[]): Middleware =>
  async (ctx, next) => {
    const start = performance.now();
    const tell = (delivered: boolean) => {
      const { requestId, account, notes, route = 'none' } = ctx.state;
      // One that lingers has its answer already.
      const status = delivered || ctx.respond === false ? ctx.res.statusCode : 499;
      const told = {
        requestId,
        method: ctx.method,
        route,
        path: ctx.path,
        status,
        outcome: outcomeOf(status),
        start,
        ms: performance.now() - start,
        account: account?.id,
        facts: notes.facts,
        spans: notes.spans,
        traceparent: ctx.get('traceparent'),
      };
      for (const recorder of recorders) recorder(told);
    };
    const ended = new Promise<boolean>((resolve) => onceEnded(ctx, resolve));
    await next();
    // Not awaited: the answer goes out once all middlewares are through.
    void ended.then(tell);
  };
