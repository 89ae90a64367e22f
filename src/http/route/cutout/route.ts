import type { Cutout } from '../../../cutout/cutout.ts';
import { outOfMemory } from '../../../limits/limitErrors.ts';
import type { MemoryReservation } from '../../../limits/memoryBudget.ts';
import type { Logger } from '../../../ops/log.ts';
import { accountOf, formOf, type Middleware } from '../../context.ts';
import { onResponseEnd } from '../../onResponseEnd.ts';
import type { Route } from '../../router.ts';
import { present } from './present.ts';
import { parseCutout } from './schema.ts';

/**
 * The upload is no longer needed; from here on only the answer is held. A cached result costs nothing to ask for, so
 * it is sent only while there is memory for one more answer; throws 503.
 */
function reserveResponse(reservation: MemoryReservation | undefined, bytes: number, replayed: boolean): void {
  reservation?.resize(replayed ? 0 : bytes);
  if (replayed && reservation?.grow(bytes) === false) throw outOfMemory();
}

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
      retainUploads: ctx.state.memory?.retain,
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
    // Nothing was made of the upload, or that has ended.
    if (result.replayed) for (const file of formOf(ctx).files.values()) file.free();
    reserveResponse(ctx.state.memory, result.bytes.length, result.replayed);
    present(ctx, result);
  };
  return { method: 'POST', paths: ['/v1.0/cutout', '/v1.0/removebg'], handlers: [...before, handler] };
}
