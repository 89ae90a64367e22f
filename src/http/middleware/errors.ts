import { AppError, clientClosed, toAppError } from '../../errors.ts';
import type { Logger } from '../../ops/log.ts';
import type { RequestAttributes } from '../../ops/telemetry.ts';
import type { Context, Middleware } from '../context.ts';
import { errorHeaders } from '../errorHeaders.ts';
import { isUploading, lingeringClose } from '../lingeringClose.ts';
import { hasEnded } from '../onResponseEnd.ts';

function answerError(ctx: Context, error: AppError): void {
  ctx.status = error.status;
  ctx.body = error.envelope();
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.set(errorHeaders(error));
}

/**
 * Public detail for the log. Causes may repeat input, so they are logged for internal errors only; a store's
 * cause contains none.
 */
function detailOf({ reason, reported, detail, cause }: AppError): string | undefined {
  if (reason === 'store' && cause instanceof Error) return cause.message;
  return reported ? undefined : detail;
}

function attributesOf(error: AppError): RequestAttributes {
  const detail = detailOf(error);
  return {
    error: error.code,
    ...(error.reason && { reason: error.reason }),
    ...(detail !== undefined && { detail }),
  };
}

/** Sends nothing: the client is gone, or its connection answers it. What still arrives of the body is not kept. */
function discard(ctx: Context): void {
  ctx.status = clientClosed.status;
  ctx.respond = false;
  ctx.req.resume();
}

/**
 * Turns whatever is thrown into the error envelope of the contract.
 * Internal errors are logged with their cause, beside the line of the request.
 */
export const errors =
  (logger: Logger): Middleware =>
  async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = toAppError(thrown);
      const { requestId, telemetry } = ctx.state;
      telemetry.add(attributesOf(error));
      if (error.reported) logger.error({ request: requestId, err: error.cause ?? error }, error.code);
      // Internal errors expose only the request id.
      const shown =
        error.id === 'internal_error'
          ? new AppError('internal_error', { detail: `Request id: ${requestId}` })
          : error;
      if (hasEnded(ctx)) return discard(ctx);
      answerError(ctx, shown);
      if (isUploading(ctx)) lingeringClose(ctx);
    }
  };
