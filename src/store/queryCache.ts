import type { Sql } from './database.ts';

/** The maximum number of answers that are cached; when it is reached, all are discarded. */
const maxAnswers = 1000;

/**
 * Remembers answers of a query by its parameter for as long as nobody, this process or another, has written to the
 * database: each is what the database would answer now. Remembers nothing where `Sql.version` does not say so.
 */
export class QueryCache<T extends object | boolean> {
  readonly #sql: Sql;
  readonly #answers = new Map<string | number, T>();
  #version: number | undefined;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The answer of `query`, or of an earlier one with this key. Rejects as `query` does. */
  async get(key: string | number, query: () => Promise<T | undefined>): Promise<T | undefined> {
    const version = this.#sql.version();
    if (version === undefined) return query();
    if (version !== this.#version) {
      this.#answers.clear();
      this.#version = version;
    }
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    const answer = await query();
    // What was written since the version was read has given the database another one, which the next call will find.
    if (answer === undefined || version !== this.#version) return answer;
    if (this.#answers.size >= maxAnswers) this.#answers.clear();
    this.#answers.set(key, answer);
    return answer;
  }
}
