import { randomUUID } from 'node:crypto';
import { luaNow, type Redis, type Reply, script } from '../store/redis.ts';
import {
  type RateLimit,
  type RateOptions,
  type RateOutcome,
  type RateState,
  rateCost,
  rateRefusal,
  rateState,
} from './rate.ts';

/**
 * KEYS: window. ARGV: cost (0 only reads), limit, window in milliseconds, name of a new window. Returns what
 * was taken (1 or 0), the window's start (-1: none), its used share, now, and its name. A window that starts
 * in the future was opened before Redis' clock was set back: it is restarted now, so that none exceeds its
 * length.
 */
const take = script(`${luaNow}
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
return {1, start, used + cost, now, name}`);

/** KEYS: window. ARGV: its name when the share was taken, the share. */
const release = script(`
if redis.call('HGET', KEYS[1], 'name') ~= ARGV[1] then return end
if redis.call('HINCRBY', KEYS[1], 'calls', -1) <= 0 then
  redis.call('DEL', KEYS[1])
else
  redis.call('HINCRBY', KEYS[1], 'used', -ARGV[2])
end`);

const keyOf = (account: string) => `cutout:rate:${account}`;

/**
 * Rate windows shared by all nodes, on Redis' clock. A call is refused with STORE_UNAVAILABLE while Redis
 * cannot be reached; what cannot be given back then expires with the window.
 */
export class RedisRateLimit implements RateLimit {
  readonly #redis: Redis;
  readonly #options: RateOptions;

  constructor(redis: Redis, options: RateOptions) {
    this.#redis = redis;
    this.#options = options;
  }

  get limited(): boolean {
    return this.#options.megapixels > 0;
  }

  async state(account: string): Promise<RateState> {
    const fresh = rateState(this.#options, Date.now());
    if (!this.limited) return fresh;
    return this.#take(account, 0).then(
      ({ state }) => state,
      () => fresh,
    );
  }

  refusal(seconds: number): RateState {
    return rateRefusal(this.#options, Date.now(), seconds);
  }

  async usedUpState(account: string): Promise<RateState | undefined> {
    if (!this.limited) return undefined;
    const { state } = await this.#take(account, 0);
    return state.remaining === 0 ? state : undefined;
  }

  async take(account: string, pixels: number): Promise<RateOutcome> {
    if (!this.limited) return { outcome: 'taken', ticket: { release: async () => {} } };
    const cost = rateCost(this.#options, pixels);
    const { taken, name, state } = await this.#take(account, cost);
    if (!taken) return { outcome: 'refused', state };
    let open = true;
    return {
      outcome: 'taken',
      ticket: {
        release: async () => {
          if (!open) return;
          open = false;
          await this.#redis.commands.run(release, [keyOf(account)], [name, cost]).catch(() => {});
        },
      },
    };
  }

  async #take(account: string, cost: number) {
    const { megapixels, windowSeconds } = this.#options;
    const args = [cost, megapixels, windowSeconds * 1000, randomUUID()];
    const reply = (await this.#redis.commands.run(take, [keyOf(account)], args)) as readonly Reply[];
    const [taken = 0, start = 0, used = 0, now = 0] = reply.slice(0, 4).map(Number);
    const window = start < 0 ? undefined : { end: start + windowSeconds * 1000, used };
    return { taken: taken === 1, name: String(reply[4]), state: rateState(this.#options, now, window) };
  }
}
