import type { Sql } from '../store/database.ts';
import { dayOf } from './entries.ts';

interface Found {
  readonly id: string | number;
  readonly stored: number;
  readonly derived: number;
}

/** What is stored and what the entries give, for everything of a kind. */
interface Check {
  readonly what: string;
  readonly sql: string;
}

const checks: readonly Check[] = [
  {
    what: 'The balance of account',
    sql: `SELECT account.id, account.balance AS stored, coalesce(sum(entry.amount), 0) AS derived
      FROM account LEFT JOIN entry ON entry.account_id = account.id GROUP BY account.id, account.balance`,
  },
  {
    what: 'The balance after entry',
    sql: `SELECT id, balance AS stored,
        sum(amount) OVER (PARTITION BY account_id ORDER BY id) AS derived FROM entry`,
  },
  {
    what: 'Whether it is open, of reservation',
    sql: `SELECT reserved.id,
        (SELECT count(*) FROM answer WHERE answer.reservation_id = reserved.id) AS stored,
        1 - (SELECT count(*) FROM entry AS ended
          WHERE ended.reservation_id = reserved.id AND ended.kind IN ('settle', 'release')) AS derived
      FROM entry AS reserved WHERE reserved.kind = 'reserve'`,
  },
  {
    what: 'Whether it stands, of the undelivered charge',
    sql: `SELECT charge_id AS id, 1 AS stored,
        (SELECT count(*) FROM entry WHERE reservation_id = charge_id AND kind = 'settle')
          - (SELECT count(*) FROM entry WHERE reservation_id = charge_id AND kind = 'refund') AS derived
      FROM answer WHERE charge_id IS NOT NULL`,
  },
  {
    what: 'The amount of entry',
    sql: `SELECT ended.id, ended.amount AS stored,
        CASE ended.kind WHEN 'settle' THEN 0 ELSE -reserved.amount END AS derived
      FROM entry AS ended JOIN entry AS reserved ON reserved.id = ended.reservation_id
      WHERE ended.kind <> 'reserve'`,
  },
];

interface FreeUse {
  readonly accountId: string;
  readonly period: string;
  readonly used: number;
}

/** Free previews by month and by day, once as they are counted and once as the entries tell. */
async function freePreviews(sql: Sql): Promise<Found[]> {
  const stored = await sql.all<FreeUse>('SELECT account_id AS "accountId", period, used FROM free_use');
  const derived = await sql.all<{ accountId: string; day: number; used: number }>(
    `SELECT account_id AS "accountId", at / 86400000 AS day, count(*) AS used FROM entry AS reserved
     WHERE payment = 'free' AND NOT EXISTS (SELECT 1 FROM entry AS ended
       WHERE ended.reservation_id = reserved.id AND ended.kind IN ('release', 'refund'))
     GROUP BY account_id, day`,
  );
  const sums = new Map<string, number>();
  for (const { accountId, day, used } of derived) {
    const date = dayOf(day * 86_400_000);
    for (const period of [date, date.slice(0, 7)]) {
      const id = `${accountId} in ${period}`;
      sums.set(id, (sums.get(id) ?? 0) + used);
    }
  }
  const kept = new Map(stored.map(({ accountId, period, used }) => [`${accountId} in ${period}`, used]));
  return [...new Set([...sums.keys(), ...kept.keys()])]
    .map((id) => ({ id, stored: kept.get(id) ?? 0, derived: sums.get(id) ?? 0 }))
    .filter((each) => each.stored !== each.derived);
}

/** Every way in which the books contradict themselves, as sentences; none when they are right. Reads all. */
export async function contradictions(sql: Sql): Promise<string[]> {
  const sentences: string[] = [];
  const tell = (what: string, found: readonly Found[]) => {
    for (const { id, stored, derived } of found)
      sentences.push(`${what} ${id} is ${stored}, its entries give ${derived}.`);
  };
  for (const { what, sql: text } of checks) {
    const wrong = `SELECT id, stored, derived FROM (${text}) AS found WHERE stored <> derived ORDER BY id`;
    tell(what, await sql.all<Found>(wrong));
  }
  tell('The free previews of account', await freePreviews(sql));
  return sentences;
}
