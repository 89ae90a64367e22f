import type { Admission } from '../../limits/admission.ts';
import { overloaded } from '../../limits/refuse.ts';
import { accountOf, type Middleware } from '../context.ts';

/** 503 before the body is read while so much waits that nothing could be worked on in time. */
export const overload =
  (admission: Pick<Admission, 'refusal'>): Middleware =>
  async (ctx, next) => {
    const busy = admission.refusal(accountOf(ctx).id, ctx.state.deadline);
    if (busy) throw overloaded(busy);
    await next();
  };
