import { randomUUID } from 'node:crypto';
import { RequestTelemetry } from '../../ops/telemetry.ts';
import { type Middleware, setHeaders } from '../context.ts';

/** Creates the request's id for answer and log. An id sent by the client is ignored. */
export const requestId: Middleware = async (ctx, next) => {
  ctx.state.requestId = randomUUID();
  ctx.state.telemetry = new RequestTelemetry();
  setHeaders(ctx, { 'X-Request-Id': ctx.state.requestId });
  await next();
};
