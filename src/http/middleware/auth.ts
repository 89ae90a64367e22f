import type { Account } from '../../accounts/accounts.ts';
import { fail } from '../../errors.ts';
import type { Context, Middleware } from '../context.ts';

/** The account a key belongs to; undefined when the key is unknown or revoked. */
export type Authenticate = (key: string) => Account | undefined | Promise<Account | undefined>;

/** X-Api-Key counts when both are sent. */
function keyOf(ctx: Context): string {
  const key = ctx.get('X-Api-Key').trim();
  if (key !== '') return key;
  return /^Bearer\s+(\S+)\s*$/i.exec(ctx.get('Authorization'))?.[1] ?? '';
}

/** Before anything of the body is read. */
export const auth =
  (authenticate: Authenticate): Middleware =>
  async (ctx, next) => {
    const key = keyOf(ctx);
    if (key === '') throw fail('auth_missing');
    const account = await authenticate(key);
    if (!account) throw fail('auth_invalid');
    ctx.state.account = account;
    await next();
  };
