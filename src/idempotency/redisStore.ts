import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isFull, luaNow, type Redis, type Reply, script } from '../store/redis.ts';
import { sharedContentName } from './hash.ts';
import { keyName } from './resultKeys.ts';
import type { Found, ResultStats, ResultStore } from './resultStore.ts';
import { type ChargeReport, type Paid, SharedResult } from './sharedResult.ts';

/** How a value travels: `facts` as JSON, `bytes` as they are. */
export interface Packed {
  readonly facts: unknown;
  readonly bytes: Buffer;
}

export interface RedisStoreOptions<T> {
  readonly ttlSeconds: number;
  /** Bound of all kept results together. */
  readonly maxBytes: number;
  readonly pack: (value: T) => Packed;
  /** `name`: of the key it was kept under (`keyName`). Undefined when it is not good any more: it is forgotten, and made anew. */
  readonly unpack: (packed: Packed, name: string) => Promise<Paid<T> | undefined>;
  /** How long work counts as under way after its node was last heard of, milliseconds; 8000 when not given. */
  readonly leaseMs?: number;
  /** Hears that a result could not be kept; the call that made it succeeds all the same. */
  readonly onError: (error: unknown) => void;
}

/** Larger ones are not kept: one command holds up all others of all nodes while it moves its bytes. */
const mostBytes = 64e6;

const standardLeaseMs = 8000;
/** How often who waits looks again, milliseconds: soon at first. */
const pollMs = { first: 20, last: 250 };

/**
 * KEYS: what is asked for, its lock. ARGV: a token, the lease. Gives the key under which the value is kept, or 1:
 * the lock is the caller's, or 0: somebody else has it.
 */
const claim = script(`
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'hash' then return KEYS[1] end
if kind == 'string' then
  local same = redis.call('GET', KEYS[1])
  if redis.call('EXISTS', same) == 1 then return same end
  redis.call('DEL', KEYS[1])
end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return 0`);

/** Also takes a lock anew that Redis forgot. KEYS: lock. ARGV: token, lease. */
const renew = script(`
local holder = redis.call('GET', KEYS[1])
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end`);

/** KEYS: lock. ARGV: token. */
const release = script(`if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`);

/** KEYS: result. ARGV: its id. 1: nobody was told yet; 0: somebody was; -1: it is not there. */
const report = script(`
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return -1 end
return redis.call('HSETNX', KEYS[1], 'told', 1)`);

/** KEYS: result. ARGV: its id. */
const unreport = script(
  `if redis.call('HGET', KEYS[1], 'id') == ARGV[1] then redis.call('HDEL', KEYS[1], 'told') end`,
);

/** KEYS: result. ARGV: its id. */
const forget = script(
  `if redis.call('HGET', KEYS[1], 'id') == ARGV[1] then redis.call('UNLINK', KEYS[1]) end`,
);

const index = 'cutout:kept:index';
const sizes = 'cutout:kept:sizes';

/**
 * Counts a new result, where one is given, and forgets what expired and then the oldest until all fit the bound.
 * KEYS: results by the end of their time; their bytes ('' holds the sum). ARGV: time to live, the bound (-1: half
 * of what there is), the new result, its bytes. Gives how many there are, and their bytes.
 */
const account = script(`${luaNow}
local ttl, bound, added = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local function sum() return tonumber(redis.call('HGET', KEYS[2], '') or 0) end
local function drop(key)
  redis.call('ZREM', KEYS[1], key)
  local bytes = redis.call('HGET', KEYS[2], key)
  redis.call('HDEL', KEYS[2], key)
  if bytes then redis.call('HINCRBY', KEYS[2], '', -bytes) end
end
for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)) do drop(key) end
if added then
  drop(added)
  redis.call('ZADD', KEYS[1], now + ttl, added)
  redis.call('HSET', KEYS[2], added, ARGV[4])
  redis.call('HINCRBY', KEYS[2], '', ARGV[4])
end
if bound < 0 then bound = sum() / 2 end
while sum() > bound do
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
  if not oldest then
    redis.call('DEL', KEYS[2])
    break
  end
  redis.call('UNLINK', oldest)
  drop(oldest)
end
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('PEXPIRE', KEYS[2], ttl)
return {redis.call('ZCARD', KEYS[1]), sum()}`);

/** Of what is kept; another format is another name, so that nodes of two versions share nothing. */
const format = 2;

/** Names of accounts and calls become hashes: what lies in Redis says of a request no more than its result. */
const keptPrefix = `cutout:kept:${format}:`;
const keptKey = (key: string) => `${keptPrefix}${keyName(key)}`;
const lockKey = (key: string) => `cutout:work:${keyName(key)}`;

/** Decides which answer reports the charge of a result that nodes share. Redis remembers it together with the result. */
class RedisChargeReport implements ChargeReport {
  readonly id: string;
  readonly #redis: Redis;
  /** Under which the result lies in Redis; undefined for one of this process that is not kept yet. */
  key: string | undefined;
  /** For one of this process that Redis could not keep: whether anybody here was told. */
  #reported: boolean;

  constructor(redis: Redis, kept?: { readonly id: string; readonly key: string }) {
    this.#redis = redis;
    this.id = kept?.id ?? randomUUID();
    this.key = kept?.key;
    // If Redis has lost a result that another process made, that process reports the charge, not this one.
    this.#reported = kept !== undefined;
  }

  async first(): Promise<boolean> {
    const there = await this.#ask(report, -1);
    const first = there === -1 ? !this.#reported : there === 1;
    this.#reported = true;
    return first;
  }

  async takeBack(): Promise<void> {
    this.#reported = false;
    await this.#ask(unreport, 0);
  }

  async #ask(what: typeof report, otherwise: Reply): Promise<Reply> {
    if (this.key === undefined) return otherwise;
    return this.#redis.commands.run(what, [this.key], [this.id]).catch(() => otherwise);
  }
}

/**
 * Results in Redis, for all nodes. Work under way holds a lock with a lease that its node renews; who waits for
 * it looks again and again until the result is there, the lock is free, or the caller leaves. What is kept is
 * gone with its time, and the oldest goes first when room runs out.
 */
export class RedisResultStore<T> implements ResultStore<T> {
  readonly name = sharedContentName;
  readonly #redis: Redis;
  readonly #options: RedisStoreOptions<T>;
  /** Milliseconds. */
  readonly #ttl: number;
  #stats: ResultStats = { results: 0, bytes: 0 };

  constructor(redis: Redis, options: RedisStoreOptions<T>) {
    this.#redis = redis;
    this.#options = options;
    this.#ttl = Math.max(1, Math.round(options.ttlSeconds * 1000));
  }

  get rememberMs(): number {
    return this.#ttl;
  }

  /** As of the last result that this node kept. */
  get stats(): ResultStats {
    return this.#stats;
  }

  wrap(paid: Paid<T>): SharedResult<T> {
    return new SharedResult(paid, new RedisChargeReport(this.#redis));
  }

  async once(key: string, make: (signal: AbortSignal) => Promise<Found<T>>, signal: AbortSignal) {
    const { commands } = this.#redis;
    const { leaseMs = standardLeaseMs } = this.#options;
    const token = randomUUID();
    const lock = lockKey(key);
    for (let wait = pollMs.first; ; wait = Math.min(pollMs.last, wait * 1.5)) {
      signal.throwIfAborted();
      const claimed = await commands.run(claim, [keptKey(key), lock], [token, leaseMs]);
      if (typeof claimed === 'string') {
        const handle = (await this.#read(claimed))?.handle();
        if (handle) return handle;
      } else if (claimed === 1) {
        const renewing = setInterval(
          () => void commands.run(renew, [lock], [token, leaseMs]).catch(() => {}),
          leaseMs / 4,
        ).unref();
        try {
          const found = await make(signal);
          await this.#keep(key, found);
          return found.handle;
        } finally {
          clearInterval(renewing);
          // Where Redis does not hear of it, the lease ends by itself.
          await commands.run(release, [lock], [token]).catch(() => {});
        }
      }
      await sleep(wait, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }

  /** Others use what is there. */
  clear(): void {}

  /** Undefined when it is gone by now, or not good any more. */
  async #read(key: string): Promise<SharedResult<T> | undefined> {
    const reply = await this.#redis.values.send(['HMGET', key, 'id', 'facts', 'bytes'], 'bytes');
    const [id, facts, bytes] = reply as readonly (Buffer | null)[];
    if (!id || !facts || !bytes) return undefined;
    const packed = { facts: JSON.parse(facts.toString()), bytes };
    const paid = await this.#options.unpack(packed, key.slice(keptPrefix.length));
    if (paid) return new SharedResult(paid, new RedisChargeReport(this.#redis, { id: id.toString(), key }));
    await this.#redis.commands.run(forget, [key], [id.toString()]);
    return undefined;
  }

  async #keep(key: string, { handle: { result }, contentKey }: Found<T>): Promise<void> {
    try {
      if (contentKey !== key)
        await this.#redis.commands.send(['SET', keptKey(key), keptKey(contentKey), 'PX', String(this.#ttl)]);
      else if (result.chargeReport instanceof RedisChargeReport)
        await this.#write(keptKey(key), result.value, result.chargeReport);
    } catch (error) {
      this.#options.onError(error);
    }
  }

  async #write(key: string, value: T, chargeReport: RedisChargeReport): Promise<void> {
    const { facts, bytes } = this.#options.pack(value);
    const { maxBytes } = this.#options;
    if (bytes.length > Math.min(mostBytes, maxBytes)) return;
    const write = () =>
      this.#redis.values.atomically([
        ['UNLINK', key],
        ['HSET', key, 'id', chargeReport.id, 'facts', JSON.stringify(facts), 'bytes', bytes],
        ['PEXPIRE', key, String(this.#ttl)],
      ]);
    try {
      await write();
    } catch (error) {
      if (!isFull(error)) throw error;
      // Redis holds less than may be kept: half of it makes room.
      await this.#account(-1);
      await write();
    }
    chargeReport.key = key;
    await this.#account(maxBytes, key, bytes.length);
  }

  async #account(bound: number, ...added: (string | number)[]): Promise<void> {
    const reply = await this.#redis.commands.run(account, [index, sizes], [this.#ttl, bound, ...added]);
    const [results = 0, bytes = 0] = (reply as readonly Reply[]).map(Number);
    this.#stats = { results, bytes };
  }
}
