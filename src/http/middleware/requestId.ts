import { randomUUID } from 'node:crypto';
import { RequestTelemetry } from '../../ops/telemetry.ts';
import type { Middleware } from '../context.ts';

/** Names the request, for the answer and for the log. A name sent by the client is not taken over. */
export const requestId: Middleware = async (ctx, next) => {
  ctx.state.requestId = randomUUID();
  ctx.state.telemetry = new RequestTelemetry();
  ctx.set('X-Request-Id', ctx.state.requestId);
  await next();
};
