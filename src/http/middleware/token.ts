import { createHash, timingSafeEqual } from 'node:crypto';
import { fail } from '../../errors.ts';
import { type Attempts, attemptSourceOf, recordAttempt } from '../../limits/attempts.ts';
import { tooManyAttempts } from '../../limits/refuse.ts';
import type { Middleware } from '../context.ts';

const hash = (text: string) => createHash('sha256').update(text).digest();

/**
 * Admits requests with `Authorization: Bearer <token>`, compared in constant time, whatever its length.
 * `name` names the token in errors. Wrong tokens are counted apart from unknown keys, so that a broken API
 * client does not lock out operators; after too many an address has to wait, whatever it sends.
 */
export function tokenGuard(token: string, name: string, attempts: Attempts): Middleware {
  const expected = hash(token);
  return async (ctx, next) => {
    const sent = /^Bearer\s+(\S+)\s*$/i.exec(ctx.get('Authorization'))?.[1];
    if (sent === undefined) {
      throw fail('auth_missing', { detail: `Send the ${name} token as Authorization: Bearer <token>.` });
    }
    const source = `${name} token ${attemptSourceOf(ctx.ip)}`;
    const right = timingSafeEqual(hash(sent), expected);
    const wait = await recordAttempt(attempts, source, right);
    if (wait > 0) throw tooManyAttempts(`wrong ${name} tokens`, wait);
    if (!right) throw fail('auth_invalid', { detail: `This is not the ${name} token of this service.` });
    await next();
  };
}
