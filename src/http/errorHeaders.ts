import type { AppError, RateWindow } from '../errors.ts';

/** The three headers of docs/contract.md section 11, for successes and refusals. */
export const rateHeaders = ({ limit, remaining, reset }: RateWindow): Readonly<Record<string, string>> => ({
  'X-RateLimit-Limit': String(limit),
  'X-RateLimit-Remaining': String(remaining),
  'X-RateLimit-Reset': String(reset),
});

/** Headers of the answer that an error becomes, beside Content-Type. A server that stops also closes the connection. */
export const errorHeaders = (error: AppError): Readonly<Record<string, string>> => ({
  ...(error.window && rateHeaders(error.window)),
  ...(error.retryAfter !== undefined && { 'Retry-After': String(error.retryAfter) }),
  ...(error.reason === 'stopping' && { Connection: 'close' }),
  ...error.headers,
});
