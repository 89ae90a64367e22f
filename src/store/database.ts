/** What a column holds, and what a parameter may be. Numbers are whole. */
export type Value = string | number | Uint8Array | null;

/** Named parameters: `@name` in the text. What the text does not name is ignored. */
export interface Values {
  readonly [name: string]: Value;
}

/** The few clauses that SQLite and PostgreSQL write differently. schema.ts has the rest. */
export interface Dialect {
  /** Behind a SELECT: whoever else wants these rows for that waits until this transaction ends. */
  readonly forUpdate: string;
  /** Small letters of any script, as far as the database knows them. */
  readonly lower: (expression: string) => string;
  /** The clock that all who share the database have in common, Unix milliseconds. */
  readonly clock: string;
  /** To be run when rows with given numbers came into a table: new ones count on from there. */
  readonly followNumbers: (table: string) => string | undefined;
}

/**
 * SQL that SQLite and PostgreSQL both read. Columns are renamed in quotes (`created_at AS "createdAt"`). Texts are
 * constants of the program, never made from input. Rejects with STORE_UNAVAILABLE while the database cannot be reached.
 */
export interface Sql {
  readonly dialect: Dialect;
  all<Row>(text: string, values?: Values): Promise<Row[]>;
  /** The first row. */
  get<Row>(text: string, values?: Values): Promise<Row | undefined>;
  /** How many rows it changed. */
  run(text: string, values?: Values): Promise<number>;
  /**
   * All or nothing. `work` uses the `Sql` it is given and no other. It may be run again from its beginning where two
   * transactions met or a connection broke, so it must do nothing that cannot be taken back. Inside another
   * transaction it is part of that one.
   */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
}

export interface SchemaSql extends Sql {
  /** Statements of the schema, in SQLite's words. */
  script(text: string): Promise<void>;
}

/** The books' database, in SQLite or PostgreSQL. */
export interface Database extends Sql {
  /** For messages; holds no password. */
  readonly name: string;
  /** A transaction that no other one of this kind overlaps, on whatever machine. */
  exclusive<T>(work: (sql: SchemaSql) => Promise<T>): Promise<T>;
  /** Whatever `work` reads is of one moment; it must not write. Holds nobody up. */
  snapshot<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  /** Once, when nothing is under way any more. */
  close(): Promise<void>;
}
