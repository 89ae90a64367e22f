import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, ErrorReply, RESP_TYPES } from '@redis/client';
import { UserError } from '../errors.ts';
import { StoreError } from './error.ts';

type Argument = string | Buffer;
/** A reply of Redis: a number, text or bytes, null, or a list of replies. */
export type Reply = number | string | Buffer | null | readonly Reply[];

/** A Lua script, which Redis runs atomically. */
export interface Script {
  readonly source: string;
  readonly sha: string;
}

/** A `small` script moves only a few bytes of control data, and runs even if Redis has reached its memory limit. */
export function script(lua: string, size: 'small' | 'large' = 'small'): Script {
  const source = size === 'small' ? `#!lua flags=allow-oom\n${lua}` : lua;
  return { source, sha: createHash('sha1').update(source).digest('hex') };
}

/** Lines of a script that set `now` to Redis' clock in milliseconds, the same for all nodes. */
export const luaNow =
  "local time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\n";

/** Errors of a Redis that is reachable but unable to answer now: starting, full, a replica, disk full. */
const passing = /^(OOM|LOADING|BUSY|READONLY|MISCONF|MASTERDOWN|NOREPLICAS|UNKILLABLE|NOAUTH|WRONGPASS)\b/;

/** The reason in words; errors of several addresses have a code only. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return error.message || String((error as { code?: unknown }).code ?? error.name);
};

const unavailable = (cause: unknown): StoreError =>
  new StoreError('STORE_UNAVAILABLE', `Redis cannot be used at the moment: ${reasonOf(cause)}.`, { cause });

/** Whether Redis refused a write because it has reached its memory limit. */
export const isFull = (error: unknown): boolean =>
  error instanceof StoreError && error.cause instanceof ErrorReply && /^OOM\b/.test(error.cause.message);

export interface RedisOptions {
  /** redis[s]://[[user]:password@]host[:port][/number] */
  readonly url: string;
  /** Called once when Redis cannot be used any more, with the reason, and once when it can again (undefined). */
  readonly onChange: (lost: Error | undefined) => void;
}

type Client = ReturnType<typeof create>;

const create = (url: string) =>
  createClient({
    url,
    // Replies of the second version are lists, texts and numbers only.
    RESP: 2,
    // Commands are not queued while disconnected: by then the caller has answered.
    disableOfflineQueue: true,
    socket: {
      connectTimeout: 2000,
      reconnectStrategy: (retries) => Math.min(1000, 25 * 2 ** Math.min(retries, 6)) + Math.random() * 50,
    },
  });

const heartbeatMs = 1000;
/** Milliseconds after which a connection that is open but not usable is given up: its address may lead elsewhere by now. */
const giveUpMs = 3000;

/**
 * Checks a connection by a write, because requests need writes: a replica answers reads, and so does a Redis whose snapshots
 * fail. A full Redis passes: it answers requests too. Sent as a whole, so that one exchange is enough after a restart.
 */
const heartbeat = [
  'EVAL',
  script("return redis.call('SET', KEYS[1], '', 'PX', ARGV[1])").source,
  '1',
  'cutout:heartbeat',
  String(10 * heartbeatMs),
];

/**
 * One connection that reconnects by itself. A command without an answer in `timeoutMs` milliseconds (a dead machine,
 * a hanging process) ends, and a new connection is opened; TCP would wait a quarter of an hour.
 */
class Link {
  readonly #options: RedisOptions;
  readonly #timeoutMs: number;
  readonly #heartbeat: NodeJS.Timeout;
  #client: Client;
  /** The time at which the connection was last opened or lost, `performance.now()`; undefined while it is usable. */
  #waitingSince: number | undefined;
  #lost = false;
  #closed = false;
  #opened = () => {};
  /** Resolves when the first connection is open and was checked. */
  readonly opened = new Promise<void>((resolve) => {
    this.#opened = resolve;
  });

  constructor(options: RedisOptions, timeoutMs: number) {
    this.#options = options;
    this.#timeoutMs = timeoutMs;
    this.#client = this.#connect();
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs).unref();
  }

  /** Whether the connection is usable: a lost one, or a Redis that does not answer or write, is known within three seconds. */
  get isReachable(): boolean {
    return this.#waitingSince === undefined;
  }

  /** Rejects with STORE_UNAVAILABLE if there is no answer, and with Redis' own error for an invalid command. */
  send(args: readonly Argument[], as: 'text' | 'bytes' = 'text'): Promise<Reply> {
    const typeMapping = as === 'bytes' ? { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } } : {};
    return this.#ask((client) => client.sendCommand<Reply>([...args], typeMapping));
  }

  /** Executes all commands or none (MULTI/EXEC). */
  atomically(commands: readonly (readonly Argument[])[]): Promise<unknown> {
    return this.#ask((client) => {
      if (!client.isReady) return Promise.reject(new Error('not connected'));
      const all = client.multi();
      for (const args of commands) all.addCommand([...args]);
      return all.exec();
    });
  }

  async run({ source, sha }: Script, keys: readonly string[], args: readonly (Argument | number)[]) {
    const rest = [
      String(keys.length),
      ...keys,
      ...args.map((arg) => (typeof arg === 'number' ? `${arg}` : arg)),
    ];
    try {
      return await this.send(['EVALSHA', sha, ...rest]);
    } catch (error) {
      // Redis was restarted or flushed.
      if (!(error instanceof ErrorReply) || !error.message.startsWith('NOSCRIPT')) throw error;
      return this.send(['EVAL', source, ...rest]);
    }
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#heartbeat);
    if (this.#client.isOpen) this.#client.destroy();
  }

  async #ask<T>(ask: (client: Client) => Promise<T>): Promise<T> {
    const client = this.#client;
    let ended = false;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        // If this thread was blocked, the answer may have arrived already and is read first.
        setImmediate(() => {
          if (ended) return;
          const error = new Error(`no answer within ${this.#timeoutMs} ms`);
          this.#replace(client, error);
          reject(error);
        });
      }, this.#timeoutMs);
    });
    try {
      return await Promise.race([ask(client), late]);
    } catch (error) {
      if (error instanceof ErrorReply && !passing.test(error.message)) throw error;
      throw unavailable(error);
    } finally {
      ended = true;
      clearTimeout(timer);
    }
  }

  #connect(): Client {
    const client = create(this.#options.url);
    this.#waitingSince = performance.now();
    client.on('error', (error: Error) => {
      if (client === this.#client) this.#lose(error);
    });
    client.on('ready', () => {
      if (client === this.#client) void this.#check().then(this.#opened);
    });
    // Retries until it succeeds; the listener above receives its errors.
    client.connect().catch(() => {});
    return client;
  }

  #lose(error: Error): void {
    this.#waitingSince ??= performance.now();
    if (!this.#lost && !this.#closed) this.#options.onChange(error);
    this.#lost = true;
  }

  #replace(client: Client, reason: Error): void {
    if (client !== this.#client || this.#closed) return;
    this.#lose(reason);
    this.#client = this.#connect();
    if (client.isOpen) client.destroy();
  }

  #beat(): void {
    if (this.#waitingSince !== undefined && performance.now() - this.#waitingSince > giveUpMs)
      this.#replace(this.#client, new Error('no connection'));
    else if (this.#client.isReady) void this.#check();
  }

  /** Never rejects. */
  async #check(): Promise<void> {
    const client = this.#client;
    const refusal = await this.send(heartbeat).then(
      () => undefined,
      (error: unknown) => error,
    );
    // A connection that was lost or replaced meanwhile has been reported, and the next one is checked again.
    if (client !== this.#client || !client.isReady) return;
    if (refusal !== undefined) {
      const reason = refusal instanceof StoreError ? refusal.cause : refusal;
      this.#lose(reason instanceof Error ? reason : new Error(String(reason)));
      return;
    }
    this.#waitingSince = undefined;
    if (this.#lost) this.#options.onChange(undefined);
    this.#lost = false;
  }
}

/** Milliseconds that a start waits for Redis. */
const openMs = 10_000;

/** Host and port of the URL, never its password. */
const placeOf = (url: string): string => {
  const { hostname, port } = new URL(url);
  return `${hostname || '127.0.0.1'}:${port || 6379}`;
};

/** The Redis of all nodes. Commands and images have connections of their own: no lock waits behind 50 MB. */
export class Redis {
  readonly commands: Link;
  readonly values: Link;

  private constructor(options: RedisOptions) {
    this.commands = new Link(options, 2000);
    this.values = new Link({ ...options, onChange: () => {} }, 10_000);
  }

  /** Throws UserError if no Redis, or too old a one, answers. `onWarning` receives a setting that may lose data. */
  static async open(options: RedisOptions, onWarning: (message: string) => void): Promise<Redis> {
    const place = placeOf(options.url);
    const client = createClient({
      RESP: 2,
      url: options.url,
      socket: { connectTimeout: openMs, reconnectStrategy: false },
    });
    client.on('error', () => {});
    const late = sleep(openMs, undefined, { ref: false }).then(() => {
      throw new Error('no answer');
    });
    late.catch(() => {});
    let info: string;
    try {
      info = await Promise.race([client.connect().then(() => client.info()), late]);
    } catch (error) {
      throw new UserError(
        `CUTOUT_REDIS_URL names a Redis at ${place} that cannot be used: ${reasonOf(error)}. Start it, or correct the address.`,
      );
    } finally {
      if (client.isOpen) client.destroy();
    }
    const said = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim();
    if (Number.parseInt(said('redis_version') ?? '', 10) < 7)
      throw new UserError(`The Redis at ${place} is version ${said('redis_version')}; 7 or newer is needed.`);
    const policy = said('maxmemory_policy');
    if (policy !== undefined && policy !== 'noeviction')
      onWarning(`Redis evicts keys when it is full (maxmemory-policy ${policy}); set it to noeviction.`);
    const redis = new Redis(options);
    await Promise.all([redis.commands.opened, redis.values.opened]);
    return redis;
  }

  /** Whether commands are answered and written, small ones and values. */
  get isReachable(): boolean {
    return this.commands.isReachable && this.values.isReachable;
  }

  close(): void {
    this.commands.close();
    this.values.close();
  }
}
