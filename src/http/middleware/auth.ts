import { timingSafeEqual } from 'node:crypto';
import type { Account } from '../../accounts/accounts.ts';
import { hashKey } from '../../accounts/keyFormat.ts';
import { fail } from '../../errors.ts';
import { type Attempts, attemptSourceOf, recordAttempt } from '../../limits/attempts.ts';
import { tooManyAttempts } from '../../limits/limitErrors.ts';
import { type Context, keyHashOf, type Middleware } from '../context.ts';

/** The account of a key, by its hash; undefined if the key is unknown or revoked. */
export type Authenticate = (hash: Buffer) => Account | undefined | Promise<Account | undefined>;

/** X-Api-Key takes precedence if both are sent. */
function keyOf(ctx: Context): string {
  const key = ctx.get('X-Api-Key').trim();
  if (key !== '') return key;
  return /^Bearer\s+(\S+)\s*$/i.exec(ctx.get('Authorization'))?.[1] ?? '';
}

/**
 * Guard before the body: finds the account of the key. A key that is unknown is refused, and slowed down if its address sent
 * many; a valid one always passes, because a stranger may share its address. No key can be guessed, so the limit saves
 * work: what an unknown key costs before it is refused is one look-up by an index.
 */
export const auth =
  (authenticate: Authenticate, attempts: Attempts): Middleware =>
  async (ctx, next) => {
    const key = keyOf(ctx);
    if (key === '') throw fail('auth_missing');
    const hash = hashKey(key);
    const account = await authenticate(hash);
    if (!account) {
      const wait = await attempts.failed(attemptSourceOf(ctx.ip));
      throw wait > 0 ? tooManyAttempts('unknown keys', wait) : fail('auth_invalid');
    }
    ctx.state.account = account;
    ctx.state.keyHash = hash;
    await next();
  };

/** Guard after the body: the key may have been revoked while it was read. That is no failed attempt. */
export const authAfterBody =
  (authenticate: Authenticate): Middleware =>
  async (ctx, next) => {
    if (!(await authenticate(keyHashOf(ctx)))) throw fail('auth_invalid');
    await next();
  };

/**
 * Admits requests with `Authorization: Bearer <token>`, compared in constant time, whatever its length.
 * `name` names the token in errors. Wrong tokens are counted apart from unknown keys, so that a broken API
 * client does not lock out operators; after too many an address has to wait, whatever it sends.
 */
export function tokenGuard(token: string, name: string, attempts: Attempts): Middleware {
  const expected = hashKey(token);
  return async (ctx, next) => {
    const sent = /^Bearer\s+(\S+)\s*$/i.exec(ctx.get('Authorization'))?.[1];
    if (sent === undefined) {
      throw fail('auth_missing', { detail: `Send the ${name} token as Authorization: Bearer <token>.` });
    }
    const source = `${name} token ${attemptSourceOf(ctx.ip)}`;
    const right = timingSafeEqual(hashKey(sent), expected);
    const wait = await recordAttempt(attempts, source, right);
    if (wait > 0) throw tooManyAttempts(`wrong ${name} tokens`, wait);
    if (!right) throw fail('auth_invalid', { detail: `This is not the ${name} token of this service.` });
    await next();
  };
}
