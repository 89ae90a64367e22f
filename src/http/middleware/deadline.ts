import { clientClosed, fail } from '../../errors.ts';
import type { Middleware } from '../context.ts';
import { onResponseEnd } from '../onResponseEnd.ts';

/** One abort signal for the whole request: the client disconnected, or time is up. */
export const deadline =
  (seconds: number): Middleware =>
  async (ctx, next) => {
    const ms = seconds * 1000;
    const controller = new AbortController();
    const timer = setTimeout(
      () => controller.abort(fail('timeout', { detail: `The request took longer than ${seconds} s.` })),
      ms,
    );
    onResponseEnd(ctx, (delivered) => {
      clearTimeout(timer);
      if (!delivered) controller.abort(clientClosed);
    });
    ctx.state.signal = controller.signal;
    ctx.state.deadline = performance.now() + ms;
    await next();
  };
