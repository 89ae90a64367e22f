import type { Cutout } from '../../../cutout/cutout.ts';
import type { Logger } from '../../../ops/log.ts';
import { accountOf, formOf, type Middleware } from '../../context.ts';
import { onResponseEnd } from '../../onResponseEnd.ts';
import type { Route } from '../../router.ts';
import { present } from './present.ts';
import { parseCutout } from './schema.ts';

/** `POST /v1.0/cutout` and the path that clients of the published API use. */
export function cutoutRoute(before: readonly Middleware[], cutout: Cutout, logger: Logger): Route {
  const handler: Middleware = async (ctx) => {
    const { requestId, signal, telemetry } = ctx.state;
    const request = parseCutout(formOf(ctx));
    telemetry.add({ size: request.size });
    const result = await cutout(request, {
      accountId: accountOf(ctx).id,
      requestId,
      idempotencyKey: ctx.get('Idempotency-Key') || undefined,
      retainUploads: ctx.state.hold?.retain,
      signal,
      deadline: ctx.state.deadline,
      telemetry,
    });
    ctx.state.headFirst = result.tracksDelivery;
    onResponseEnd(ctx, async (delivered) => {
      // Not set if an error is answered instead, or if the connection closes before the answer.
      const sent = ctx.state.headSent === true;
      try {
        await result.end(!sent ? 'unsent' : delivered ? 'delivered' : 'broken');
      } catch (error) {
        logger.error({ request: requestId, err: error }, 'delivered');
      }
    });
    present(ctx, result);
    // The upload is no longer needed; from here on only the answer is held.
    ctx.state.hold?.resize(ctx.length ?? 0);
  };
  return { method: 'POST', paths: ['/v1.0/cutout', '/v1.0/removebg'], handlers: [...before, handler] };
}
