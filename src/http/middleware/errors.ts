import { AppError, clientClosed, type ErrorId, excerpt, fail, toAppError } from '../../errors.ts';
import type { Logger } from '../../ops/log.ts';
import type { RequestAttributes } from '../../ops/telemetry.ts';
import { type StoreCode, StoreError } from '../../store/error.ts';
import type { Context, Middleware } from '../context.ts';
import { hasEnded } from '../onResponseEnd.ts';
import { rateHeaders } from './rateWindow.ts';

function answerError(ctx: Context, error: AppError): void {
  ctx.status = error.status;
  ctx.body = error.envelope();
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.set(errorHeaders(error));
}

/** For the log. Causes may repeat input: only those of internal errors and of a store, which has none, are logged. */
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

/** Answers what is thrown as the contract's error envelope; internal errors are logged with their cause as well. */
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

/** Headers of the answer that an error becomes, beside Content-Type. A server that stops also closes the connection. */
export const errorHeaders = (error: AppError): Readonly<Record<string, string>> => ({
  ...(error.window && rateHeaders(error.window)),
  ...(error.retryAfter !== undefined && { 'Retry-After': String(error.retryAfter) }),
  ...(error.reason === 'stopping' && { Connection: 'close' }),
  ...error.headers,
});

const lingerMs = 1000;

/** Whether the client may still be sending its body. */
const isUploading = ({ req }: Context): boolean => !req.complete && !req.destroyed;

/**
 * Lingering close: sends the answer in `ctx` while the client still sends. Closing at once would reset the connection
 * before it is read, and reading on would have no end. So the answer is sent, further input is discarded, and the
 * connection is closed when the client is done, or after a second.
 */
function lingeringClose(ctx: Context): void {
  const { req, res } = ctx;
  const body = ctx.body as string;
  ctx.respond = false;
  res.setHeader('Connection', 'close');
  if (ctx.method === 'HEAD') res.flushHeaders();
  else res.write(body);

  // Ending the response makes node:http destroy the socket, so it is delayed.
  const end = () => {
    clearTimeout(timer);
    res.end();
  };
  const timer = setTimeout(end, lingerMs);
  req.unpipe();
  req.removeAllListeners('data');
  req.once('end', end);
  // A reset ends the connection like any other end.
  req.once('error', end);
  req.resume();
}

/** Errors of the database that the request causes. Every other StoreError is an internal error. */
const answers: Partial<Record<StoreCode, ErrorId>> = {
  STORE_UNKNOWN_ACCOUNT: 'not_found',
  STORE_UNKNOWN_KEY: 'not_found',
  STORE_UNKNOWN_RESERVATION: 'not_found',
  STORE_REFERENCE_REUSED: 'malformed_request',
  STORE_NOT_CHARGED: 'malformed_request',
  STORE_KEYS: 'malformed_request',
};

/** Answers them with the store's own sentences, which are written for operators. */
export const storeErrors: Middleware = async (_ctx, next) => {
  try {
    await next();
  } catch (error) {
    const id = error instanceof StoreError ? answers[error.code] : undefined;
    throw id && error instanceof StoreError ? fail(id, { detail: excerpt(error.message, 300) }) : error;
  }
};
