import type { SchemaWords } from './migrations.ts';

/** Values of columns and parameters. Numbers are integers. */
export type Value = string | number | Uint8Array | null;

/** Named parameters: `@name` in the text. Names that the text does not use are ignored. */
export interface Values {
  readonly [name: string]: Value;
}

/** What SQLite and PostgreSQL write differently. */
export interface Dialect {
  /** Appended to a SELECT: locks its rows until this transaction ends. */
  readonly forUpdate: string;
  /**
   * Appended to the only table of a FROM: reads it through that index. SQLite chooses without statistics, and takes one
   * that reads more; PostgreSQL has them.
   */
  readonly through: (index: string) => string;
  /** Small letters of any script, as far as the database knows them. */
  readonly lower: (expression: string) => string;
  /** The clock shared by all clients of the database, as an expression in Unix milliseconds. */
  readonly clock: string;
  /** Statement to run after rows with given numbers were inserted: automatic numbers continue after them. */
  readonly followNumbers: (table: string) => string | undefined;
  readonly schema: SchemaWords;
}

/**
 * SQL that both SQLite and PostgreSQL understand. Columns are renamed in quotes (`created_at AS
 * "createdAt"`). Texts are constants of the program, never made from input. Rejects with STORE_UNAVAILABLE
 * while the database cannot be reached.
 */
export interface Sql {
  readonly dialect: Dialect;
  /**
   * Changes whenever anybody, in this process or another, has committed something. Undefined where that cannot be known
   * without a round trip, within a transaction, and while a transaction of this process runs.
   */
  version(): number | undefined;
  all<Row>(text: string, values?: Values): Promise<Row[]>;
  /** The first row. */
  get<Row>(text: string, values?: Values): Promise<Row | undefined>;
  /** Number of changed rows. */
  run(text: string, values?: Values): Promise<number>;
  /**
   * Atomic. `work` must use only the `Sql` it is given, and have no other effects: it may run again after a conflict
   * or a lost connection. Inside another transaction it is part of that one.
   */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
}

export interface SchemaSql extends Sql {
  /** Runs statements of the schema, in this database's dialect. */
  script(text: string): Promise<void>;
}

/** The service's database, SQLite or PostgreSQL. */
export interface Database extends Sql {
  /** The name that messages use; it contains no password. */
  readonly name: string;
  /** A transaction that excludes all others of this kind, on any machine. */
  exclusive<T>(work: (sql: SchemaSql) => Promise<T>): Promise<T>;
  /** `work` reads a consistent snapshot and must not write. Blocks nobody. */
  snapshot<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  /** Call once, when no other call is pending. */
  close(): Promise<void>;
}
