import type { Account } from '../../accounts/accounts.ts';
import { hashKey } from '../../accounts/keyFormat.ts';
import { fail } from '../../errors.ts';
import { type Attempts, attemptSourceOf } from '../../limits/attempts.ts';
import { tooManyAttempts } from '../../limits/refuse.ts';
import { type Context, keyHashOf, type Middleware } from '../context.ts';

/** The account of a key, by its hash; undefined if the key is unknown or revoked. */
export type Authenticate = (hash: Buffer) => Account | undefined | Promise<Account | undefined>;

/** X-Api-Key takes precedence if both are sent. */
function keyOf(ctx: Context): string {
  const key = ctx.get('X-Api-Key').trim();
  if (key !== '') return key;
  return /^Bearer\s+(\S+)\s*$/i.exec(ctx.get('Authorization'))?.[1] ?? '';
}

/** Recently valid keys, by their hashes: they pass even while their address has to wait for failed attempts. */
class GoodKeys {
  static readonly #maxKeys = 10_000;
  readonly #hashes = new Set<string>();

  has(name: string): boolean {
    return this.#hashes.has(name);
  }

  delete(name: string): void {
    this.#hashes.delete(name);
  }

  add(name: string): void {
    this.#hashes.delete(name);
    this.#hashes.add(name);
    if (this.#hashes.size <= GoodKeys.#maxKeys) return;
    const oldest = this.#hashes.keys().next();
    if (!oldest.done) this.#hashes.delete(oldest.value);
  }
}

/** Guard before the body: finds the account of the key. Repeated unknown keys are slowed down. */
export const auth = (authenticate: Authenticate, attempts: Attempts): Middleware => {
  const good = new GoodKeys();
  return async (ctx, next) => {
    const key = keyOf(ctx);
    if (key === '') throw fail('auth_missing');
    const hash = hashKey(key);
    const source = () => attemptSourceOf(ctx.ip);
    const throwIfThrottled = (wait: number) => {
      if (wait > 0) throw tooManyAttempts('unknown keys', wait);
    };
    const name = hash.toString('latin1');
    const known = good.has(name);
    // Checked before the look-up and again with its result, because other attempts may have been counted
    // meanwhile.
    if (!known) throwIfThrottled(await attempts.wait(source()));
    const account = await authenticate(hash);
    if (!account) {
      good.delete(name);
      throwIfThrottled(await attempts.failed(source()));
      throw fail('auth_invalid');
    }
    if (!known) throwIfThrottled(await attempts.wait(source()));
    good.add(name);
    ctx.state.account = account;
    ctx.state.keyHash = hash;
    await next();
  };
};

/** Guard after the body: the key may have been revoked while it was read. That is no failed attempt. */
export const authAfterBody =
  (authenticate: Authenticate): Middleware =>
  async (ctx, next) => {
    if (!(await authenticate(keyHashOf(ctx)))) throw fail('auth_invalid');
    await next();
  };
