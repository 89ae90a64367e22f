import { luaNow, type Redis, type Reply, script } from '../store/redis.ts';
import {
  type RateLimit,
  type RateOptions,
  type RateOutcome,
  type RateState,
  rateCost,
  rateState,
} from './rate.ts';

/**
 * KEYS: window. ARGV: cost (0 only looks), limit, milliseconds of a window. Gives what was taken (1 or 0), the
 * window's start (-1: there is none), what is used of it, and now.
 */
const take = script(`${luaNow}
local cost, limit, span = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local found = redis.call('HMGET', KEYS[1], 'start', 'used')
local start, used = tonumber(found[1]), tonumber(found[2])
if not start or now >= start + span then
  start, used = nil, 0
end
if cost == 0 or cost > limit - used then
  return {0, start or -1, used, now}
end
if not start then
  start = now
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'start', string.format('%.0f', start))
  redis.call('PEXPIRE', KEYS[1], span)
end
redis.call('HINCRBY', KEYS[1], 'used', cost)
redis.call('HINCRBY', KEYS[1], 'calls', 1)
return {1, start, used + cost, now}`);

/** KEYS: window. ARGV: its start when the share was taken, the share. */
const giveBack = script(`
if redis.call('HGET', KEYS[1], 'start') ~= ARGV[1] then return end
if redis.call('HINCRBY', KEYS[1], 'calls', -1) <= 0 then
  redis.call('DEL', KEYS[1])
else
  redis.call('HINCRBY', KEYS[1], 'used', -ARGV[2])
end`);

const keyOf = (account: string) => `cutout:rate:${account}`;

/**
 * Rate windows that nodes share, by Redis' clock. A call is refused with STORE_UNAVAILABLE while Redis cannot be
 * asked; what cannot be given back then is back when its window is over.
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

  async usedUp(account: string): Promise<RateState | undefined> {
    if (!this.limited) return undefined;
    const { state } = await this.#take(account, 0);
    return state.remaining === 0 ? state : undefined;
  }

  async take(account: string, pixels: number): Promise<RateOutcome> {
    if (!this.limited) return { outcome: 'taken', ticket: { giveBack: async () => {} } };
    const cost = rateCost(this.#options, pixels);
    const { taken, start, state } = await this.#take(account, cost);
    if (!taken) return { outcome: 'refused', state };
    let open = true;
    return {
      outcome: 'taken',
      ticket: {
        giveBack: async () => {
          if (!open) return;
          open = false;
          await this.#redis.commands.run(giveBack, [keyOf(account)], [start, cost]).catch(() => {});
        },
      },
    };
  }

  async #take(account: string, cost: number) {
    const { megapixels, windowSeconds } = this.#options;
    const args = [cost, megapixels, windowSeconds * 1000];
    const reply = (await this.#redis.commands.run(take, [keyOf(account)], args)) as readonly Reply[];
    const [taken = 0, start = 0, used = 0, now = 0] = reply.map(Number);
    const state = rateState(this.#options, now, start < 0 ? undefined : { start, used });
    return { taken: taken === 1, start, state };
  }
}
