import type { Sql } from './database.ts';

/** Replaces the database's clock; Unix milliseconds. */
export type Now = () => number;

/** The clock as an SQL expression and its values: the database's own, which all servers share, unless `now` replaces it. */
export function clockOf(sql: Sql, now: Now | undefined) {
  return now
    ? { text: 'CAST(@now AS BIGINT)', values: { now: now() } }
    : { text: sql.dialect.clock, values: {} };
}

/** One reading of that clock, Unix milliseconds. */
export async function readClock(sql: Sql, now: Now | undefined): Promise<number> {
  if (now) return now();
  const found = await sql.get<{ at: number }>(`SELECT ${sql.dialect.clock} AS at`);
  if (!found) throw new Error('A clock without a reading.');
  return found.at;
}
