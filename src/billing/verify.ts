import type { Sql } from '../store/database.ts';
import { dayOf } from './entries.ts';
import { type PriceList, priceOfZero } from './price.ts';

interface Found {
  readonly id: string | number;
  readonly stored: number;
  readonly derived: number;
}

/** What is checked, and the stored values with the same values derived from the entries. */
const checks: Readonly<Record<string, string>> = {
  'The balance of account': `SELECT account.id, account.balance AS stored, coalesce(sum(entry.amount), 0) AS derived
      FROM account LEFT JOIN entry ON entry.account_id = account.id GROUP BY account.id, account.balance`,
  'The balance after entry': `SELECT id, balance AS stored,
        sum(amount) OVER (PARTITION BY account_id ORDER BY id) AS derived FROM entry`,
  'Whether it is open, of reservation': `SELECT reserved.id,
        (SELECT count(*) FROM answer WHERE answer.reservation_id = reserved.id) AS stored,
        1 - (SELECT count(*) FROM entry AS ended
          WHERE ended.reservation_id = reserved.id AND ended.kind IN ('settle', 'release')) AS derived
      FROM entry AS reserved WHERE reserved.kind = 'reserve'`,
  'Whether it is valid, of the undelivered charge': `SELECT charge_id AS id, 1 AS stored,
        (SELECT count(*) FROM entry WHERE reservation_id = charge_id AND kind = 'settle')
          - (SELECT count(*) FROM entry WHERE reservation_id = charge_id AND kind = 'refund') AS derived
      FROM answer WHERE charge_id IS NOT NULL`,
  'The amount of entry': `SELECT ended.id, ended.amount AS stored,
        CASE ended.kind WHEN 'settle' THEN 0 ELSE -reserved.amount END AS derived
      FROM entry AS ended JOIN entry AS reserved ON reserved.id = ended.reservation_id
      WHERE ended.kind IN ('settle', 'release', 'refund') AND reserved.kind = 'reserve'`,
};

const ending = "('settle', 'release', 'refund')";
/** Whether the reservation was charged; its condition names all ends, as their index does. */
const chargedBy = (entry: string) => `SELECT 1 FROM entry AS done
  WHERE done.reservation_id = ${entry}.id AND done.kind IN ('settle', 'release') AND done.kind = 'settle'`;
/** Condition: the entry named `charge` is charged work, not a repeat of it. */
const isCharge = `charge.kind = 'reserve' AND charge.reservation_id IS NULL
  AND EXISTS (${chargedBy('charge')})`;

/** Rules that entries, answers and remembered charges obey (settlement.ts), as the sentence about a row that breaks each. */
const rules: Readonly<Record<string, string>> = {
  'Entry {id} is a grant or purchase without credits.':
    "SELECT id FROM entry WHERE kind IN ('grant', 'purchase') AND amount <= 0",
  'Entry {id} refers to a reservation, but does not end one.':
    "SELECT id FROM entry WHERE kind IN ('grant', 'purchase', 'adjust') AND reservation_id IS NOT NULL",
  'Entry {id} ends a reservation that does not exist.': `SELECT ended.id
      FROM entry AS ended LEFT JOIN entry AS reserved
        ON reserved.id = ended.reservation_id AND reserved.kind = 'reserve'
      WHERE ended.kind IN ${ending} AND reserved.id IS NULL`,
  'Entry {id} ends a reservation of another account.': `SELECT ended.id
      FROM entry AS ended JOIN entry AS reserved ON reserved.id = ended.reservation_id
      WHERE ended.kind IN ${ending} AND reserved.kind = 'reserve' AND ended.account_id <> reserved.account_id`,
  'Entry {id} refunds a reservation that was not charged.': `SELECT back.id
      FROM entry AS back JOIN entry AS reserved ON reserved.id = back.reservation_id
      WHERE back.kind = 'refund' AND reserved.kind = 'reserve' AND NOT EXISTS (${chargedBy('reserved')})`,
  'Reservation {id} adds credits instead of taking them.':
    "SELECT id FROM entry WHERE kind = 'reserve' AND amount > 0",
  'Reservation {id} is a free preview that took credits.':
    "SELECT id FROM entry WHERE kind = 'reserve' AND payment = 'free' AND amount < 0",
  'Reservation {id} repeats a charge, but took credits again.': `SELECT id FROM entry
      WHERE kind = 'reserve' AND payment <> 'free' AND reservation_id IS NOT NULL AND amount < 0`,
  'Reservation {id} repeats a call that was not charged.': `SELECT again.id
      FROM entry AS again LEFT JOIN entry AS charge
        ON charge.id = again.reservation_id AND ${isCharge}
      WHERE again.kind = 'reserve' AND again.reservation_id IS NOT NULL AND charge.id IS NULL`,
  'Reservation {id} repeats a charge of another account.': `SELECT again.id
      FROM entry AS again JOIN entry AS charge ON charge.id = again.reservation_id
      WHERE again.kind = 'reserve' AND ${isCharge} AND charge.account_id <> again.account_id`,
  'Answer {id} and the entry it refers to have different accounts.': `SELECT answer.id
      FROM answer JOIN entry ON entry.id IN (answer.reservation_id, answer.charge_id)
      WHERE entry.account_id <> answer.account_id GROUP BY answer.id`,
  'Answer {id} refers to an entry that is not a reservation.': `SELECT answer.id
      FROM answer JOIN entry ON entry.id = answer.reservation_id
      WHERE entry.kind <> 'reserve'`,
  'Answer {id} carries a charge that is only a repeat.': `SELECT answer.id
      FROM answer JOIN entry ON entry.id = answer.charge_id
      WHERE entry.kind = 'reserve' AND entry.reservation_id IS NOT NULL`,
  'Reservation {id} is remembered as charged, but was not charged.': `SELECT repeat.account_id || ' ' || repeat.name AS id
      FROM repeat
        LEFT JOIN entry AS charge ON charge.id = repeat.reservation_id AND ${isCharge}
      WHERE charge.id IS NULL`,
  'Reservation {id} is remembered as charged, but belongs to another account.': `SELECT repeat.account_id || ' ' || repeat.name AS id
      FROM repeat
        JOIN entry AS charge ON charge.id = repeat.reservation_id
      WHERE ${isCharge} AND charge.account_id <> repeat.account_id`,
};

/** Work with the amount 0 that is neither free nor a repeat, and was not done at a price of 0. */
const unpaid = `SELECT id FROM entry WHERE kind = 'reserve' AND payment = @payment AND amount = 0
  AND reservation_id IS NULL AND (note IS NULL OR note <> @note) ORDER BY id`;

/** Free previews by month and by day, as stored and as derived from the entries. */
async function freePreviews(sql: Sql): Promise<Found[]> {
  type Used<Of> = Of & { readonly accountId: string; readonly used: number };
  const stored = await sql.all<Used<{ period: string }>>(
    'SELECT account_id AS "accountId", period, used FROM free_use',
  );
  const derived = await sql.all<Used<{ day: number }>>(
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

/** Every contradiction in the ledger, as a sentence; empty if there is none. Reads everything. */
export async function contradictions(sql: Sql, prices: PriceList): Promise<string[]> {
  const sentences: string[] = [];
  const report = (what: string, found: readonly Found[]) => {
    for (const { id, stored, derived } of found)
      sentences.push(`${what} ${id} is ${stored}, its entries give ${derived}.`);
  };
  for (const [what, text] of Object.entries(checks)) {
    const wrong = `SELECT id, stored, derived FROM (${text}) AS found WHERE stored <> derived ORDER BY id`;
    report(what, await sql.all<Found>(wrong));
  }
  report('The free previews of account', await freePreviews(sql));
  for (const [sentence, text] of Object.entries(rules)) {
    const rows = await sql.all<Pick<Found, 'id'>>(`SELECT id FROM (${text}) AS found ORDER BY id`);
    sentences.push(...rows.map(({ id }) => sentence.replace('{id}', () => String(id))));
  }
  for (const payment of ['preview', 'full'] as const) {
    // Older versions wrote no note for a price of 0, so at that price such entries cannot be judged.
    if (prices[payment] === 0) continue;
    const rows = await sql.all<{ id: number }>(unpaid, { payment, note: priceOfZero });
    sentences.push(...rows.map(({ id }) => `Reservation ${id} has the amount 0, but repeats no charge.`));
  }
  return sentences;
}
