import { randomUUID } from 'node:crypto';
import { luaNow, type Redis, script } from '../store/redis.ts';
import type { ConcurrencyLimit } from './concurrency.ts';

/** KEYS: the account's calls, scored by the end of their lease. ARGV: limit, call, lease. */
const enter = script(`${luaNow}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
-- Leases from before Redis' clock was set back; those that are alive are renewed.
for _, call in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now + ARGV[3]), '+inf')) do
  redis.call('ZADD', KEYS[1], now + ARGV[3], call)
end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`);

/** Also adds calls that Redis has lost. KEYS: the account's calls. ARGV: lease, calls. */
const renew = script(`${luaNow}
for i = 2, #ARGV do
  redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])`);

const keyOf = (account: string) => `cutout:calls:${account}`;

/**
 * Concurrent calls of all nodes. Each holds a lease that its node renews: calls of a dead node count until it
 * expires. While Redis cannot be reached, a call is refused with STORE_UNAVAILABLE.
 */
export class RedisConcurrencyLimit implements ConcurrencyLimit {
  readonly #redis: Redis;
  readonly #limit: number;
  readonly #leaseMs: number;
  readonly #mine = new Map<string, Set<string>>();
  #timer: NodeJS.Timeout | undefined;

  /** `limit` 0: no limit; `leaseMs`: milliseconds that a call counts after its last renewal. */
  constructor(redis: Redis, limit: number, leaseMs = 10_000) {
    this.#redis = redis;
    this.#limit = limit;
    this.#leaseMs = leaseMs;
  }

  async enter(account: string): Promise<(() => Promise<void>) | undefined> {
    if (this.#limit === 0) return async () => {};
    const call = randomUUID();
    const entered = await this.#redis.commands.run(
      enter,
      [keyOf(account)],
      [this.#limit, call, this.#leaseMs],
    );
    if (entered !== 1) return undefined;
    const calls = this.#mine.get(account) ?? new Set();
    this.#mine.set(account, calls.add(call));
    this.#timer ??= setInterval(() => this.#renew(), this.#leaseMs / 4).unref();
    return async () => {
      if (!calls.delete(call)) return;
      if (calls.size === 0) this.#mine.delete(account);
      if (this.#mine.size === 0) {
        clearInterval(this.#timer);
        this.#timer = undefined;
      }
      // If Redis cannot be reached, the lease expires by itself.
      await this.#redis.commands.send(['ZREM', keyOf(account), call]).catch(() => {});
    };
  }

  #renew(): void {
    for (const [account, calls] of this.#mine)
      this.#redis.commands.run(renew, [keyOf(account)], [this.#leaseMs, ...calls]).catch(() => {});
  }
}
