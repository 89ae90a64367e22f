import type { Database, Sql, Value, Values } from './database.ts';
import { StoreError } from './error.ts';

interface Table {
  readonly name: string;
  /** Its primary key. */
  readonly key: readonly string[];
  /** Its rows are numbered by the database. */
  readonly numbered?: true;
}

/** All tables, ordered so that rows only refer to rows of earlier tables. */
const tables: readonly Table[] = [
  { name: 'account', key: ['id'] },
  { name: 'api_key', key: ['id'] },
  { name: 'entry', key: ['id'], numbered: true },
  { name: 'answer', key: ['id'] },
  { name: 'free_use', key: ['account_id', 'period'] },
  { name: 'repeat', key: ['account_id', 'name'] },
  { name: 'improve_image', key: ['id'] },
  { name: 'identity', key: ['issuer', 'subject'] },
  { name: 'console_link', key: ['hash'] },
  { name: 'secret', key: ['name'] },
  { name: 'deleted_account', key: ['person', 'account_id'] },
  { name: 'former_account', key: ['account_id', 'former_id'] },
  { name: 'audit', key: ['id'], numbered: true },
];

type Row = Readonly<Record<string, Value>>;

const rowsAtATime = 100;

/** Yields the rows in the order of the key, page by page: a database may be larger than memory. */
async function* pages(sql: Sql, { name, key }: Table): AsyncGenerator<readonly Row[]> {
  const order = `ORDER BY ${key.join(', ')} LIMIT ${rowsAtATime}`;
  const next = `(${key.join(', ')}) > (${key.map((column) => `@${column}`).join(', ')})`;
  for (let last: Row | undefined; ; ) {
    const text = last ? `SELECT * FROM ${name} WHERE ${next} ${order}` : `SELECT * FROM ${name} ${order}`;
    const rows: readonly Row[] = await sql.all<Row>(text, last);
    if (rows.length > 0) yield rows;
    last = rows.at(-1);
    if (rows.length < rowsAtATime) return;
  }
}

async function insert(sql: Sql, table: string, rows: readonly Row[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {});
  const places = rows.map((_, row) => `(${columns.map((column) => `@${column}_${row}`).join(', ')})`);
  const values: Record<string, Value> = {};
  for (const [row, each] of rows.entries())
    for (const column of columns) values[`${column}_${row}`] = each[column] ?? null;
  await sql.run(`INSERT INTO ${table} (${columns.join(', ')}) VALUES ${places.join(', ')}`, values);
}

async function copyTable(from: Sql, to: Sql, table: Table): Promise<void> {
  for await (const rows of pages(from, table)) {
    // Whole pages and single rows, so that each table needs two prepared statements only.
    const groups = rows.length === rowsAtATime ? [rows] : rows.map((row) => [row]);
    for (const group of groups) await insert(to, table.name, group);
  }
  const follow = table.numbered && to.dialect.followNumbers(table.name);
  if (follow) await to.get(follow);
}

export interface Sums {
  readonly accounts: number;
  readonly entries: number;
  /** Sum of all balances, quarter credits. */
  readonly balance: number;
}

const accountSums = `SELECT account.id, account.balance, count(entry.id) AS entries,
    coalesce(sum(entry.amount), 0) AS moved, coalesce(max(entry.id), 0) AS last
  FROM account LEFT JOIN entry ON entry.account_id = account.id
  GROUP BY account.id, account.balance ORDER BY account.id`;

interface AccountSums extends Values {
  readonly id: string;
  readonly balance: number;
  readonly entries: number;
}

/** All accounts with balance and the number and sum of their entries, and the number of rows of every table. */
async function sumsOf(
  sql: Sql,
): Promise<{ accounts: AccountSums[]; rows: Readonly<Record<string, number>> }> {
  const rows: Record<string, number> = {};
  for (const { name } of tables) {
    const counted = await sql.get<{ rows: number }>(`SELECT count(*) AS rows FROM ${name}`);
    rows[name] = counted?.rows ?? 0;
  }
  return { accounts: await sql.all<AccountSums>(accountSums), rows };
}

/**
 * Copies everything into an empty database, SQLite or PostgreSQL, and compares every account and table before the
 * copy becomes final. Reads a snapshot of a database in use. Both have this program's schema. Rejects with
 * STORE_NOT_EMPTY, or STORE_CONTRADICTION if the two differ; then nothing is written.
 */
export const copyDatabase = (from: Database, to: Database): Promise<Sums> =>
  from.snapshot((source) =>
    to.exclusive(async (target) => {
      const before = await sumsOf(target);
      const taken = tables.find(({ name }) => before.rows[name] !== 0);
      if (taken) {
        const message = `The database ${to.name} has rows in ${taken.name} already; only an empty database can be filled.`;
        throw new StoreError('STORE_NOT_EMPTY', message);
      }
      for (const table of tables) await copyTable(source, target, table);
      const [there, here] = [await sumsOf(source), await sumsOf(target)];
      if (JSON.stringify(there) !== JSON.stringify(here)) {
        const message = `What was written to ${to.name} differs from ${from.name}; nothing was changed.`;
        throw new StoreError('STORE_CONTRADICTION', message);
      }
      const sum = (of: (account: AccountSums) => number) =>
        here.accounts.reduce((total, account) => total + of(account), 0);
      return {
        accounts: here.accounts.length,
        entries: sum(({ entries }) => entries),
        balance: sum(({ balance }) => balance),
      };
    }),
  );
