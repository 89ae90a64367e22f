import type { Cutout } from '../../../cutout/cutout.ts';
import { fail } from '../../../errors.ts';
import type { Logger } from '../../../ops/log.ts';
import type { Middleware } from '../../context.ts';
import type { Route } from '../../router.ts';
import { present } from './present.ts';
import { parseCutout } from './schema.ts';

/** `POST /v1.0/cutout` and the name that all clients of the published API use. */
export function cutoutRoute(before: readonly Middleware[], cutout: Cutout, logger: Logger): Route {
  const handler: Middleware = async (ctx) => {
    const { account, form, requestId, signal, facts } = ctx.state;
    if (!account || !form) throw fail('internal_error', { cause: new Error('auth and body come first') });
    const request = parseCutout(form);
    facts['size'] = request.size;
    const result = await cutout(request, {
      accountId: account.id,
      requestId,
      signal,
      note: (more) => Object.assign(facts, more),
    });
    ctx.res.once('close', () => {
      result
        .delivered()
        .catch((error: unknown) => logger.error({ request: requestId, err: error }, 'delivered'));
    });
    present(ctx, result);
  };
  return { method: 'POST', paths: ['/v1.0/cutout', '/v1.0/removebg'], handlers: [...before, handler] };
}
