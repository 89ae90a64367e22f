import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Database, Dialect, SchemaSql, Sql, Value, Values } from './database.ts';
import { InDoubt, StoreError } from './error.ts';
import { dialects } from './migrations.ts';

interface PostgresOptions {
  /** postgres://user:password@host:port/database?sslmode=… */
  readonly url: string;
  /** Size of the connection pool. */
  readonly connections?: number;
  /** Milliseconds that a call waits for a database that cannot be reached. */
  readonly patienceMs?: number;
}

const dialect: Dialect = {
  forUpdate: ' FOR UPDATE',
  through: () => '',
  // Columns compare by bytes, where only ASCII has small letters; the database's own locale knows more.
  lower: (expression) => `lower((${expression}) COLLATE "default")`,
  clock: 'CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)',
  followNumbers: (table) =>
    `SELECT setval(pg_get_serial_sequence('${table}', 'id'), coalesce(max(id), 0) + 1, false) FROM ${table}`,
  schema: dialects.postgres,
};

/** The first with pg_xact_status for 64-bit transaction ids. */
const oldestVersion = 13;
/** Milliseconds for one statement, at the server and, if the network loses the answer, here. */
const statementMs = 10_000;
const answerMs = 15_000;
/** Milliseconds for statements of the schema, and for waiting for another node's. */
const schemaMs = 600_000;
/** Number of times that work is run again after conflicts with other transactions. */
const attempts = 8;
const serverLife = "coalesce((SELECT stats_reset FROM pg_stat_bgwriter)::text, '')";
/** Advisory lock of `exclusive`: any number that is the same on all nodes ('cutout'). */
const exclusiveLock = 0x6375746f;

/** Types that are returned as numbers: 64-bit integers and their sums. */
const wholeNumbers: readonly number[] = [pg.types.builtins.INT8, pg.types.builtins.NUMERIC];

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`The database gave ${text}, too large a number.`);
  return value;
}

const types: pg.CustomTypesConfig = {
  getTypeParser: (type, format) =>
    wholeNumbers.includes(type) ? wholeNumber : pg.types.getTypeParser(type, format),
};

interface Positional {
  readonly text: string;
  readonly names: readonly string[];
}

const positional = new Map<string, Positional>();

/** Translates `@name` to PostgreSQL's $1, $2, …; the same name is the same parameter. */
function toPositional(text: string): Positional {
  let known = positional.get(text);
  if (!known) {
    const names: string[] = [];
    const numbered = text.replaceAll(/@(\w+)/g, (_, name: string) => {
      if (!names.includes(name)) names.push(name);
      return `$${names.indexOf(name) + 1}`;
    });
    known = { text: numbered, names };
    positional.set(text, known);
  }
  return known;
}

/** Removes U+0000, which PostgreSQL cannot store. */
const storable = (value: Value | undefined) =>
  typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value;

function query(text: string, values: Values): { text: string; values: unknown[] } {
  const { text: numbered, names } = toPositional(text);
  const missing = names.find((name) => values[name] === undefined);
  if (missing !== undefined) throw new RangeError(`Missing parameter ${missing}.`);
  return { text: numbered, values: names.map((name) => storable(values[name])) };
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';

/** The connection is lost, or there is none: the statement may or may not have been executed. */
function isLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // Connection exceptions; server shutting down or starting; out of connections or memory; a standby.
  if (/^(08...|57P0[1-5]|25P03|53...|25006)$/.test(codeOf(error))) return true;
  if (/^(E[A-Z]{3,}|EAI_\w+)$/.test(codeOf(error))) return true;
  return /^(Connection terminated|timeout exceeded|timeout expired|Query read timeout|Client )/.test(
    error.message,
  );
}

/** Conflict with another transaction; not executed. */
const isConflict = (error: unknown): boolean => /^(40001|40P01|23505)$/.test(codeOf(error));

/** Timed out waiting for a lock or the server, or connection refused; not executed. */
const isRefused = (error: unknown): boolean => /^(57014|55P03|28...|3D...)$/.test(codeOf(error));

/** Statements on one connection. */
class Connection implements SchemaSql {
  readonly dialect = dialect;
  readonly version = () => undefined;
  readonly #client: pg.ClientBase;
  readonly #limit: { readonly query_timeout?: number };

  constructor(client: pg.ClientBase, limitMs?: number) {
    this.#client = client;
    this.#limit = limitMs === undefined ? {} : { query_timeout: limitMs };
  }

  async all<Row>(text: string, values: Values = {}): Promise<Row[]> {
    return (await this.#query(text, values)).rows as Row[];
  }

  async get<Row>(text: string, values: Values = {}): Promise<Row | undefined> {
    return (await this.#query(text, values)).rows[0] as Row | undefined;
  }

  async run(text: string, values: Values = {}): Promise<number> {
    return (await this.#query(text, values)).rowCount ?? 0;
  }

  async script(text: string): Promise<void> {
    await this.#client.query({ ...this.#limit, text });
  }

  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return work(this);
  }

  #query(text: string, values: Values): Promise<pg.QueryResult> {
    return this.#client.query({ ...this.#limit, ...query(text, values) });
  }
}

/**
 * PostgreSQL through a connection pool. Calls wait a while for a database that restarts, and are then refused
 * with STORE_UNAVAILABLE. All writes are transactions, and each is committed exactly once: if the connection
 * breaks during COMMIT, the status of the transaction is looked up by its id.
 */
class PostgresDatabase implements Database {
  readonly dialect = dialect;
  readonly version = () => undefined;
  readonly name: string;
  readonly #pool: pg.Pool;
  readonly #patienceMs: number;
  /** Start time of the server behind each connection. */
  readonly #lives = new WeakMap<pg.ClientBase, string>();

  constructor(pool: pg.Pool, name: string, patienceMs: number) {
    this.#pool = pool;
    this.name = name;
    this.#patienceMs = patienceMs;
  }

  all<Row>(text: string, values: Values = {}): Promise<Row[]> {
    return this.#patiently(async () => (await this.#pool.query(query(text, values))).rows as Row[]);
  }

  async get<Row>(text: string, values?: Values): Promise<Row | undefined> {
    return (await this.all<Row>(text, values))[0];
  }

  run(text: string, values?: Values): Promise<number> {
    return this.transaction((sql) => sql.run(text, values));
  }

  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#patiently(() =>
      this.#connected(async (client) => {
        const begun: unknown = await client.query('BEGIN; SELECT pg_current_xact_id()::text AS id');
        const id = (begun as readonly pg.QueryResult<{ id: string }>[])[1]?.rows[0]?.id;
        if (id === undefined) throw new Error('PostgreSQL began a transaction without a number.');
        const life = await this.#life(client);
        const result = await work(new Connection(client));
        await commit(client).catch(async (error: unknown) => {
          if (!isLost(error) || !(await this.#committed(id, life))) throw error;
        });
        return result;
      }),
    );
  }

  exclusive<T>(work: (sql: SchemaSql) => Promise<T>): Promise<T> {
    const begin = `BEGIN; SET LOCAL statement_timeout = ${schemaMs}`;
    const alone = async (sql: SchemaSql) => {
      await sql.get('SELECT pg_advisory_xact_lock(@lock)', { lock: exclusiveLock });
      return work(sql);
    };
    return this.#within(begin, alone, schemaMs);
  }

  snapshot<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#within('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', work);
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  /** Throws STORE_OPEN with a message for the operator. */
  async check(): Promise<void> {
    try {
      const server = await this.get<{ version: string }>(
        "SELECT current_setting('server_version') AS version",
      );
      if (Number.parseInt(server?.version ?? '', 10) < oldestVersion) {
        const message = `${this.name} is PostgreSQL ${server?.version}; ${oldestVersion} or newer is needed.`;
        throw new StoreError('STORE_OPEN', message);
      }
    } catch (error) {
      if (error instanceof StoreError && error.code === 'STORE_UNAVAILABLE')
        throw new StoreError('STORE_OPEN', `${error.message} See CUTOUT_DATABASE_URL.`, { cause: error });
      throw error;
    }
  }

  #within<T>(begin: string, work: (sql: SchemaSql) => Promise<T>, limitMs?: number): Promise<T> {
    return this.#patiently(() =>
      this.#connected(async (client) => {
        await client.query(begin);
        const result = await work(new Connection(client, limitMs));
        await commit(client);
        return result;
      }),
    );
  }

  /** Runs `work` with a connection, which is then returned to the pool, or discarded if it is unusable. */
  async #connected<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    let broken = false;
    try {
      return await work(client);
    } catch (error) {
      broken = isLost(error) || !(await rolledBack(client));
      throw error;
    } finally {
      client.release(broken);
    }
  }

  /** Runs `work` again after conflicts, and while the database may soon be reachable. */
  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    const until = performance.now() + this.#patienceMs;
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (isConflict(error) && attempt < attempts) {
          await sleep(Math.random() * 5 * attempt);
        } else if (isLost(error) && performance.now() < until) {
          await sleep(Math.min(500, 25 * 2 ** attempt) * (0.5 + Math.random() / 2));
        } else if (isLost(error) || isRefused(error)) {
          throw this.#unavailable(error);
        } else {
          throw error;
        }
      }
    }
  }

  /** When the server last recovered from a crash and reset its statistics; an orderly restart does not. */
  async #life(client: pg.ClientBase): Promise<string> {
    const known = this.#lives.get(client);
    if (known !== undefined) return known;
    const { rows } = await client.query<{ life: string }>(`SELECT ${serverLife} AS life`);
    const life = rows[0]?.life ?? '';
    this.#lives.set(client, life);
    return life;
  }

  /**
   * Whether a transaction was committed whose COMMIT was not answered. After a crash, or on another server,
   * the same id may belong to another transaction.
   */
  async #committed(id: string, life: string): Promise<boolean> {
    for (;;) {
      const found = await this.get<{ status: string | null; life: string }>(
        `SELECT pg_xact_status(CAST(CAST(@id AS TEXT) AS xid8)) AS status, ${serverLife} AS life`,
        { id },
      ).catch((cause: unknown) => {
        throw this.#unavailable(new InDoubt('the outcome of a COMMIT is unknown', { cause }));
      });
      if (found?.life !== life) throw this.#unavailable(new InDoubt('the server crashed during COMMIT'));
      if (found?.status !== 'in progress') return found?.status === 'committed';
      await sleep(20);
    }
  }

  #unavailable(cause: unknown): StoreError {
    const reason = cause instanceof Error ? cause.message || codeOf(cause) : String(cause);
    return new StoreError('STORE_UNAVAILABLE', `The database ${this.name} cannot be reached: ${reason}.`, {
      cause,
    });
  }
}

/** After a failed statement whose error was ignored, PostgreSQL turns COMMIT into ROLLBACK silently. */
async function commit(client: pg.ClientBase): Promise<void> {
  const { command } = await client.query('COMMIT');
  if (command !== 'COMMIT') throw new Error('A failed statement was passed over in a transaction.');
}

const rolledBack = (client: pg.ClientBase): Promise<boolean> =>
  client.query('ROLLBACK').then(
    () => true,
    () => false,
  );

/** The URL without user and password. */
function nameOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host || 'localhost'}${pathname}`;
}

/** Connects, waiting a little for a database that is starting. Rejects with STORE_OPEN. */
export async function openPostgres(options: PostgresOptions): Promise<Database> {
  const { url, connections = 10, patienceMs = 5000 } = options;
  const pool = new pg.Pool({
    connectionString: url,
    application_name: 'cutout',
    types,
    max: connections,
    idleTimeoutMillis: 30_000,
    // Also covers waiting for a free connection, which is not an error.
    connectionTimeoutMillis: 3 * patienceMs,
    statement_timeout: statementMs,
    lock_timeout: statementMs,
    idle_in_transaction_session_timeout: answerMs,
    query_timeout: answerMs,
    keepAlive: true,
    allowExitOnIdle: true,
  });
  // Each call handles errors of its own connection; without this listener an idle one that breaks would end
  // the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  const database = new PostgresDatabase(pool, nameOf(url), patienceMs);
  try {
    await database.check();
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}
