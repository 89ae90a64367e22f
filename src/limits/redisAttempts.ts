import { createHash } from 'node:crypto';
import { type Redis, type Script, script } from '../store/redis.ts';
import type { AttemptRules, Attempts } from './attempts.ts';
import { MemoryAttempts } from './memoryAttempts.ts';

/**
 * KEYS: the source's failures. ARGV: milliseconds of a window, failures in it. Gives the milliseconds to wait: never more
 * than a window has, though Redis' clock was set back in it.
 */
const lookLua = `local left = redis.call('PTTL', KEYS[1])
if left > tonumber(ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  left = tonumber(ARGV[1])
end
if left > 0 and tonumber(redis.call('GET', KEYS[1]) or 0) >= tonumber(ARGV[2]) then return left end
`;
const look = script(`${lookLua}return 0`);
/** The same, and counts one more where there is nothing to wait for. */
const failed = script(
  `${lookLua}if redis.call('INCR', KEYS[1]) == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return 0`,
  'large',
);

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
    return (await this.#own.wait(source)) || this.#ask(look, source);
  }

  async failed(source: string): Promise<number> {
    return (await this.#own.failed(source)) || this.#ask(failed, source);
  }

  async #ask(what: Script, source: string): Promise<number> {
    const { failures, windowSeconds } = this.#rules;
    if (failures === 0) return 0;
    try {
      const left = await this.#redis.commands.run(what, [keyOf(source)], [windowSeconds * 1000, failures]);
      return Math.ceil(Number(left) / 1000);
    } catch {
      return 0;
    }
  }
}
