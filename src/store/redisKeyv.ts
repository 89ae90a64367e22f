import type { Redis } from './redis.ts';

/**
 * Redis as a store for keyv, over the shared connection: each call ends in bounded time and rejects with
 * STORE_UNAVAILABLE if it cannot be answered. @keyv/redis guarantees neither.
 */
export class RedisKeyv {
  readonly #redis: Redis;
  readonly #prefix: string;

  constructor(redis: Redis, prefix: string) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  get(key: string): Promise<unknown> {
    return this.#redis.commands.send(['GET', this.#prefix + key]);
  }

  /** `ttl` in milliseconds, greater than 0. */
  async set(key: string, value: string, ttl: number): Promise<void> {
    await this.#redis.commands.send(['SET', this.#prefix + key, value, 'PX', String(Math.ceil(ttl))]);
  }

  async delete(key: string): Promise<boolean> {
    return (await this.#redis.commands.send(['DEL', this.#prefix + key])) === 1;
  }

  /** Does nothing: other nodes use the entries. */
  async clear(): Promise<void> {}
}
