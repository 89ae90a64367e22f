import { randomUUID } from 'node:crypto';
import { luaNow, type Redis, type Reply, script } from '../store/redis.ts';
import { RateLimit, type RateOptions, rateState, type Share } from './rate.ts';

/**
 * KEYS: window. ARGV: cost (0 only reads), limit, window in milliseconds, name of a new window. Returns what was
 * taken (1 or 0), the window's start (-1: none), its used share, now, and its name. A window in the future was opened
 * before Redis' clock was set back: it restarts now.
 */
const takeLua = `${luaNow}
local cost, limit, span = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local found = redis.call('HMGET', KEYS[1], 'start', 'used', 'name')
local start, used, name = tonumber(found[1]), tonumber(found[2]), found[3]
if not start or now >= start + span then
  start, used = nil, 0
elseif start > now then
  start = now
  redis.call('HSET', KEYS[1], 'start', string.format('%.0f', start))
  redis.call('PEXPIRE', KEYS[1], span)
end
if cost == 0 or cost > limit - used then
  return {0, start or -1, used, now, name}
end
if not start then
  start = now
  redis.call('DEL', KEYS[1])
  name = ARGV[4]
  redis.call('HSET', KEYS[1], 'start', string.format('%.0f', start), 'name', name)
  redis.call('PEXPIRE', KEYS[1], span)
end
redis.call('HINCRBY', KEYS[1], 'used', cost)
redis.call('HINCRBY', KEYS[1], 'calls', 1)
return {1, start, used + cost, now, name}`;

/** The script that takes a share, by what is counted: guesses from many addresses cannot fill Redis. */
const take = { rate: script(takeLua), failures: script(takeLua, 'large') };

/** KEYS: window. ARGV: its name when the share was taken, the share. */
const release = script(`
if redis.call('HGET', KEYS[1], 'name') ~= ARGV[1] then return end
if redis.call('HINCRBY', KEYS[1], 'calls', -1) <= 0 then
  redis.call('DEL', KEYS[1])
else
  redis.call('HINCRBY', KEYS[1], 'used', -ARGV[2])
end`);

/**
 * Rate windows shared by all nodes, on Redis' clock. A call is refused with STORE_UNAVAILABLE while Redis
 * cannot be reached; what cannot be given back then expires with the window.
 */
export class RedisRateLimit extends RateLimit {
  readonly #redis: Redis;
  readonly #counted: keyof typeof take;

  constructor(redis: Redis, options: RateOptions, counted: keyof typeof take = 'rate') {
    super(options, Date.now);
    this.#redis = redis;
    this.#counted = counted;
  }

  async share(name: string, cost: number): Promise<Share> {
    const { limit, windowSeconds } = this.options;
    const { commands } = this.#redis;
    const key = `cutout:${this.#counted}:${name}`;
    const args = [cost, limit, windowSeconds * 1000, randomUUID()];
    const lua = cost === 0 ? take.rate : take[this.#counted];
    const reply = (await commands.run(lua, [key], args)) as readonly Reply[];
    const [taken = 0, start = 0, used = 0, now = 0] = reply.slice(0, 4).map(Number);
    const window = start < 0 ? undefined : { end: start + windowSeconds * 1000, used };
    return {
      taken: taken === 1,
      state: rateState(this.options, now, window),
      release: async () => {
        await commands.run(release, [key], [String(reply[4]), cost]).catch(() => {});
      },
    };
  }
}
