import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isFull, luaNow, type Redis, type Reply, script } from '../store/redis.ts';
import { type ContentIdentifier, createContentIdentifier, textHash } from './hash.ts';
import type { Acquired, KeyedHandle, ResultStats, ResultStore, ResultStoreOptions } from './resultStore.ts';
import { type Charged, type ChargeReport, SharedResult } from './sharedResult.ts';

/** A value as it is stored: `facts` as JSON, `bytes` unchanged. */
export interface Packed {
  readonly facts: unknown;
  readonly bytes: Buffer;
}

export interface RedisStoreOptions<T> extends ResultStoreOptions {
  readonly pack: (value: T) => Packed;
  /** `name`: hash of its key (`textHash`). Resolves with undefined for a value that is not valid any more; it is dropped. */
  readonly unpack: (packed: Packed, name: string) => Promise<Charged<T> | undefined>;
  /** Milliseconds after which the lock of a silent node expires; 8000 by default. */
  readonly leaseMs?: number;
}

/** Larger results are not cached: Redis serves nobody else while it moves the bytes of a command. */
const maxResultBytes = 64e6;

const standardLeaseMs = 8000;
/** Milliseconds between polls of a waiting caller: short at first. */
const pollMs = { first: 20, last: 250 };

/**
 * KEYS: the requested key, its lock. ARGV: a token, the lease. Returns the key under which the value is cached, or 1 if the
 * caller got the lock, or 0 if another one holds it.
 */
const acquire = script(`
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'hash' then return KEYS[1] end
if kind == 'string' then
  local same = redis.call('GET', KEYS[1])
  if redis.call('EXISTS', same) == 1 then return same end
  redis.call('DEL', KEYS[1])
end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return 0`);

/** Renews a lease; takes a lock again that Redis lost. KEYS: lock. ARGV: token, lease. */
const renew = script(`
local holder = redis.call('GET', KEYS[1])
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end`);

/** KEYS: lock. ARGV: token. */
const release = script(`if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`);

/** KEYS: result. ARGV: its id. 1: its charge was not reported yet; 0: it was; -1: the result is gone. */
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
 * Counts a new result, if one is given; drops expired results, then the oldest until the rest fits the bound.
 * KEYS: results by expiry; their bytes ('' holds the sum). ARGV: time to live, the bound (-1: half of the present sum), the
 * new result, its bytes. Returns the number of results and their bytes.
 */
const makeRoom = script(`${luaNow}
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

/** Version of the stored form. It is part of the keys, so that nodes of different versions share nothing. */
const format = 3;

/** Keys are hashes: Redis holds results, but neither accounts nor Idempotency-Keys. */
const resultPrefix = `cutout:kept:${format}:`;
const resultKey = (key: string) => `${resultPrefix}${textHash(key)}`;
const lockKey = (key: string) => `cutout:work:${textHash(key)}`;

/** Decides which answer reports the charge of a shared result; stored in Redis with the result. */
class RedisChargeReport implements ChargeReport {
  readonly id: string;
  readonly #redis: Redis;
  /** Key of the result in Redis; undefined for a result of this process that is not cached yet. */
  key: string | undefined;
  /** Whether the charge of a result that Redis could not store was reported by this process. */
  #reported: boolean;

  constructor(redis: Redis, cached?: { readonly id: string; readonly key: string }) {
    this.#redis = redis;
    this.id = cached?.id ?? randomUUID();
    this.key = cached?.key;
    // If Redis lost the result of another process, that process reports the charge.
    this.#reported = cached !== undefined;
  }

  async claim(): Promise<boolean> {
    const there = await this.#ask(report, -1);
    const first = there === -1 ? !this.#reported : there === 1;
    this.#reported = true;
    return first;
  }

  async release(): Promise<void> {
    this.#reported = false;
    await this.#ask(unreport, 0);
  }

  async #ask(what: typeof report, otherwise: Reply): Promise<Reply> {
    if (this.key === undefined) return otherwise;
    return this.#redis.commands.run(what, [this.key], [this.id]).catch(() => otherwise);
  }
}

/**
 * Results cached in Redis, for all nodes. Work in flight holds a lock with a lease that its node renews; other callers poll
 * until the result is there, the lock is free, or they leave. Results expire, and the oldest are evicted first.
 */
export class RedisResultStore<T> implements ResultStore<T> {
  readonly contentId: ContentIdentifier;
  readonly ttlMs: number;
  readonly #redis: Redis;
  readonly #options: RedisStoreOptions<T>;
  #stats: ResultStats = { results: 0, bytes: 0 };

  constructor(redis: Redis, options: RedisStoreOptions<T>) {
    this.#redis = redis;
    this.#options = options;
    this.contentId = createContentIdentifier(options.contentKey);
    this.ttlMs = Math.max(1, Math.round(options.ttlSeconds * 1000));
  }

  /** The state when this node last stored a result. */
  get stats(): ResultStats {
    return this.#stats;
  }

  wrap(charged: Charged<T>): SharedResult<T> {
    return new SharedResult(charged, new RedisChargeReport(this.#redis));
  }

  async acquire(key: string, signal: AbortSignal): Promise<Acquired<T>> {
    const { leaseMs = standardLeaseMs } = this.#options;
    const token = randomUUID();
    const lock = lockKey(key);
    for (let wait = pollMs.first; ; wait = Math.min(pollMs.last, wait * 1.5)) {
      signal.throwIfAborted();
      const reply = await this.#redis.commands.run(acquire, [resultKey(key), lock], [token, leaseMs]);
      if (reply === 1) return this.#lease(lock, token, leaseMs);
      if (typeof reply === 'string') {
        const handle = (await this.#read(reply))?.handle();
        if (handle) return { outcome: 'cached', handle };
      }
      await sleep(wait, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }

  async cache(key: string, { handle: { result }, contentKey }: KeyedHandle<T>): Promise<void> {
    try {
      if (contentKey !== key)
        await this.#redis.commands.send([
          'SET',
          resultKey(key),
          resultKey(contentKey),
          'PX',
          String(this.ttlMs),
        ]);
      else if (result.chargeReport instanceof RedisChargeReport)
        await this.#write(resultKey(key), result.value, result.chargeReport);
    } catch (error) {
      this.#options.onError(error);
    }
  }

  /** Does nothing: other nodes use the cached results. */
  clear(): void {}

  /** A lease that was acquired: renewed until it is released. */
  #lease(lock: string, token: string, leaseMs: number): Acquired<T> {
    const { commands } = this.#redis;
    const renewing = setInterval(
      () => void commands.run(renew, [lock], [token, leaseMs]).catch(() => {}),
      leaseMs / 4,
    ).unref();
    return {
      outcome: 'leased',
      release: async () => {
        clearInterval(renewing);
        // If Redis does not get this, the lease expires.
        await commands.run(release, [lock], [token]).catch(() => {});
      },
    };
  }

  /** Undefined if it is gone or not valid any more. */
  async #read(key: string): Promise<SharedResult<T> | undefined> {
    const reply = await this.#redis.values.send(['HMGET', key, 'id', 'facts', 'bytes'], 'bytes');
    const [id, facts, bytes] = reply as readonly (Buffer | null)[];
    if (!id || !facts || !bytes) return undefined;
    const packed = { facts: JSON.parse(facts.toString()), bytes };
    const charged = await this.#options.unpack(packed, key.slice(resultPrefix.length));
    if (charged)
      return new SharedResult(charged, new RedisChargeReport(this.#redis, { id: id.toString(), key }));
    await this.#redis.commands.run(forget, [key], [id.toString()]);
    return undefined;
  }

  async #write(key: string, value: T, chargeReport: RedisChargeReport): Promise<void> {
    const { facts, bytes } = this.#options.pack(value);
    const { maxBytes } = this.#options;
    if (bytes.length > Math.min(maxResultBytes, maxBytes)) return;
    const write = () =>
      this.#redis.values.atomically([
        ['UNLINK', key],
        ['HSET', key, 'id', chargeReport.id, 'facts', JSON.stringify(facts), 'bytes', bytes],
        ['PEXPIRE', key, String(this.ttlMs)],
      ]);
    try {
      await write();
    } catch (error) {
      if (!isFull(error)) throw error;
      // Redis has less memory than the bound: half of the results make room.
      await this.#makeRoom(-1);
      await write();
    }
    chargeReport.key = key;
    await this.#makeRoom(maxBytes, key, bytes.length);
  }

  async #makeRoom(bound: number, ...added: (string | number)[]): Promise<void> {
    const reply = await this.#redis.commands.run(makeRoom, [index, sizes], [this.ttlMs, bound, ...added]);
    const [results = 0, bytes = 0] = (reply as readonly Reply[]).map(Number);
    this.#stats = { results, bytes };
  }
}
