import { createHash } from 'node:crypto';
import { type Redis, type Reply, script } from '../store/redis.ts';
import type { AttemptRules, Attempts } from './attempts.ts';
import { MemoryAttempts } from './memoryAttempts.ts';

/** KEYS: the source's failures. ARGV: milliseconds of a window. */
const failed = script(
  `if redis.call('INCR', KEYS[1]) == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end`,
  'large',
);
/**
 * KEYS: the source's failures. ARGV: milliseconds of a window. Gives how many, and the milliseconds left: never more than a
 * window has, though Redis' clock was set back in it.
 */
const look = script(`local left = redis.call('PTTL', KEYS[1])
if left > tonumber(ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  left = tonumber(ARGV[1])
end
return {redis.call('GET', KEYS[1]) or 0, left}`);

/** Addresses belong to people: where they can be read by others, they are not written down as such. */
const keyOf = (source: string) => `cutout:failed:${createHash('sha256').update(source).digest('base64url')}`;

/**
 * Failed tries on all nodes. While Redis cannot be asked, or has no room, each node counts for itself: a brake
 * is no reason to turn people away.
 */
export class RedisAttempts implements Attempts {
  readonly #redis: Redis;
  readonly #rules: AttemptRules;
  readonly #own: MemoryAttempts;

  constructor(redis: Redis, rules: AttemptRules) {
    this.#redis = redis;
    this.#rules = rules;
    this.#own = new MemoryAttempts(rules);
  }

  async wait(source: string): Promise<number> {
    const { failures } = this.#rules;
    if (failures === 0) return 0;
    const own = await this.#own.wait(source);
    if (own > 0) return own;
    try {
      const reply = (await this.#redis.commands.run(
        look,
        [keyOf(source)],
        [this.#rules.windowSeconds * 1000],
      )) as readonly Reply[];
      const [count = 0, left = 0] = reply.map(Number);
      return count >= failures && left > 0 ? Math.ceil(left / 1000) : 0;
    } catch {
      return 0;
    }
  }

  async failed(source: string): Promise<void> {
    if (this.#rules.failures === 0) return;
    await this.#own.failed(source);
    await this.#redis.commands
      .run(failed, [keyOf(source)], [this.#rules.windowSeconds * 1000])
      .catch(() => {});
  }
}
