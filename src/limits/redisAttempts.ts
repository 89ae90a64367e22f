import { createHash } from 'node:crypto';
import { type Redis, type Script, script } from '../store/redis.ts';
import type { AttemptRules, Attempts } from './attempts.ts';
import { InMemoryAttempts } from './inMemoryAttempts.ts';

/**
 * KEYS: the source's failures. ARGV: window in milliseconds, failures per window. Returns the milliseconds to
 * wait: at most one window, even if Redis' clock was set back.
 */
const lookLua = `local left = redis.call('PTTL', KEYS[1])
if left > tonumber(ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  left = tonumber(ARGV[1])
end
if left > 0 and tonumber(redis.call('GET', KEYS[1]) or 0) >= tonumber(ARGV[2]) then return left end
`;
const look = script(`${lookLua}return 0`);
/** The same, and counts one more if there is nothing to wait for. */
const failed = script(
  `${lookLua}if redis.call('INCR', KEYS[1]) == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return 0`,
  'large',
);

/** Addresses are personal data, so Redis only holds their hashes. */
const keyOf = (source: string) => `cutout:failed:${createHash('sha256').update(source).digest('base64url')}`;

/** Failed attempts at all nodes. While Redis is full or cannot be reached, each node counts for itself. */
export class RedisAttempts implements Attempts {
  readonly #redis: Redis;
  readonly #rules: AttemptRules;
  readonly #own: InMemoryAttempts;

  constructor(redis: Redis, rules: AttemptRules) {
    this.#redis = redis;
    this.#rules = rules;
    this.#own = new InMemoryAttempts(rules);
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
