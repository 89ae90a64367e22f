import { createHash, timingSafeEqual } from 'node:crypto';
import { fail } from '../../errors.ts';
import type { Middleware } from '../context.ts';

const hash = (text: string) => createHash('sha256').update(text).digest();

/**
 * Lets pass who sends `Authorization: Bearer <token>`; compared in constant time, whatever its length. `name` is what the
 * token is called in the answers to others.
 */
export function tokenGuard(token: string, name: string): Middleware {
  const expected = hash(token);
  return async (ctx, next) => {
    const sent = /^Bearer\s+(\S+)\s*$/i.exec(ctx.get('Authorization'))?.[1];
    if (sent === undefined) {
      throw fail('auth_missing', { detail: `Send the ${name} token as Authorization: Bearer <token>.` });
    }
    if (!timingSafeEqual(hash(sent), expected)) {
      throw fail('auth_invalid', { detail: `This is not the ${name} token of this service.` });
    }
    await next();
  };
}
