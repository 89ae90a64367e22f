import type { TestFn } from 'ava';
import { standardBilling } from '../../src/billing/price.ts';
import type { ReserveRequest } from '../../src/billing/types.ts';
import { contradictions } from '../../src/billing/verify.ts';
import type { Sql } from '../../src/store/database.ts';
import { accountWith, type NewPlace, testStores } from '../support/stores.ts';

/** Accounts, and reserve entries of a correct ledger. */
interface Ids {
  readonly one: string;
  readonly other: string;
  readonly charged: number;
  readonly repeat: number;
  readonly released: number;
  readonly undelivered: number;
  readonly charged_by_other: number;
}

interface Columns {
  readonly payment?: string;
  readonly reservation?: number;
}

/** An entry that changes the balance, as if written by the program. */
async function write(sql: Sql, account: string, kind: string, amount: number, columns: Columns = {}) {
  const { payment = null, reservation = null } = columns;
  const moved = await sql.get<{ balance: number }>(
    'UPDATE account SET balance = balance + @amount WHERE id = @account RETURNING balance',
    { account, amount },
  );
  const written = await sql.get<{ id: number }>(
    `INSERT INTO entry (account_id, at, kind, amount, balance, payment, reservation_id)
     VALUES (@account, 0, @kind, @amount, @balance, @payment, @reservation) RETURNING id`,
    { account, kind, amount, balance: moved?.balance ?? 0, payment, reservation },
  );
  return written?.id ?? 0;
}

const settled = async (sql: Sql, account: string, amount: number, columns: Columns) => {
  const reservation = await write(sql, account, 'reserve', amount, columns);
  await write(sql, account, 'settle', 0, { reservation });
};

interface Corruption {
  readonly make: (sql: Sql, ids: Ids) => Promise<unknown>;
  readonly sentence: RegExp;
}

const corruptions: Readonly<Record<string, Corruption>> = {
  'a refund of a released reservation': {
    make: (sql, { one, released }) => write(sql, one, 'refund', 4, { reservation: released }),
    sentence: /refunds a reservation that was not charged/,
  },
  'a refund of an open reservation': {
    make: async (sql, { one }) => {
      const reservation = await write(sql, one, 'reserve', -4, { payment: 'full' });
      await sql.run(
        `INSERT INTO answer (id, account_id, reservation_id, expires_at) VALUES ('a', @one, @reservation, 1)`,
        { one, reservation },
      );
      await write(sql, one, 'refund', 4, { reservation });
    },
    sentence: /refunds a reservation that was not charged/,
  },
  'a refund on another account': {
    make: (sql, { other, charged }) => write(sql, other, 'refund', 4, { reservation: charged }),
    sentence: /ends a reservation of another account/,
  },
  'a release on another account': {
    make: async (sql, { one, other }) => {
      const reservation = await write(sql, one, 'reserve', -4, { payment: 'full' });
      await write(sql, other, 'release', 4, { reservation });
    },
    sentence: /ends a reservation of another account/,
  },
  'a refund of nothing': {
    make: (sql, { one }) => write(sql, one, 'refund', 4),
    sentence: /ends a reservation that does not exist/,
  },
  'work that pays the customer': {
    make: (sql, { one }) => settled(sql, one, 40, { payment: 'full' }),
    sentence: /adds credits instead of taking them/,
  },
  'work for nothing': {
    make: (sql, { one }) => settled(sql, one, 0, { payment: 'full' }),
    sentence: /has the amount 0, but repeats no charge/,
  },
  'a free preview that took credits': {
    make: async (sql, { one }) => {
      await settled(sql, one, -4, { payment: 'free' });
      const used = 'INSERT INTO free_use (account_id, period, used) VALUES (@one, @period, 1)';
      for (const period of ['1970-01', '1970-01-01']) await sql.run(used, { one, period });
    },
    sentence: /is a free preview that took credits/,
  },
  'a repeat of a charge of another account': {
    make: (sql, { one, charged_by_other }) =>
      settled(sql, one, 0, { payment: 'full', reservation: charged_by_other }),
    sentence: /repeats a charge of another account/,
  },
  'a repeat of what was released': {
    make: (sql, { one, released }) => settled(sql, one, 0, { payment: 'full', reservation: released }),
    sentence: /repeats a call that was not charged/,
  },
  'a repeat of a repeat': {
    make: (sql, { one, repeat }) => settled(sql, one, 0, { payment: 'full', reservation: repeat }),
    sentence: /repeats a call that was not charged/,
  },
  'a repeat that was charged': {
    make: (sql, { one, charged }) => settled(sql, one, -4, { payment: 'full', reservation: charged }),
    sentence: /repeats a charge, but took credits again/,
  },
  'a remembered charge of another account': {
    make: (sql, { one, charged_by_other }) =>
      sql.run(
        `INSERT INTO repeat (account_id, name, reservation_id, expires_at)
         VALUES (@one, 'content:new', @charged_by_other, 1)`,
        { one, charged_by_other },
      ),
    sentence: /is remembered as charged, but belongs to another account/,
  },
  'a remembered charge that was released': {
    make: (sql, { released }) => sql.run('UPDATE repeat SET reservation_id = @released', { released }),
    sentence: /is remembered as charged, but was not charged/,
  },
  'an answer of another account than its charge': {
    make: (sql, { other, undelivered }) =>
      sql.run('UPDATE answer SET account_id = @other WHERE charge_id = @undelivered', { other, undelivered }),
    sentence: /and the entry it refers to have different accounts/,
  },
  'an answer that is to carry a repeat': {
    make: (sql, { repeat }) => sql.run('UPDATE answer SET charge_id = @repeat', { repeat }),
    sentence: /carries a charge that is only a repeat/,
  },
  'an answer with a reservation that is none': {
    make: async (sql, { one }) => {
      const grant = await write(sql, one, 'grant', 4);
      await sql.run('UPDATE answer SET reservation_id = @grant', { grant });
    },
    sentence: /refers to an entry that is not a reservation/,
  },
  'a grant below 0': {
    make: (sql, { one }) => write(sql, one, 'grant', -4),
    sentence: /is a grant or purchase without credits/,
  },
  'a purchase below 0': {
    make: (sql, { one }) => write(sql, one, 'purchase', -4),
    sentence: /is a grant or purchase without credits/,
  },
  'an adjustment that gives a charge back': {
    make: (sql, { one, charged }) => write(sql, one, 'adjust', 4, { reservation: charged }),
    sentence: /refers to a reservation, but does not end one/,
  },
};

/** Ledgers with contradictory entries, one fault at a time. Registers its tests with `test`. */
export function testVerifyContract(test: TestFn, newPlace: NewPlace): void {
  test('verify reports every broken relation between entries in one sentence, and nothing for a correct ledger', async (t) => {
    const billing = { ...standardBilling, freePreviews: { perMonth: 1, perDay: 0 } };
    const stores = await testStores(t, billing, newPlace);
    const { ledger, database } = stores;
    const [one, other] = [await accountWith(stores, 10), await accountWith(stores, 10)];
    const work = async (account: string, size: 'full' | 'preview', content: string, how: string) => {
      const request: ReserveRequest = { size, requestId: 'r', repeat: { content, forMs: 600_000 } };
      const reservation = await ledger.reserve(account, request);
      if (how === 'release') await reservation.release();
      else await reservation.settle();
      if (how === 'deliver') await reservation.deliver();
      return reservation.id;
    };
    await work(one, 'preview', 'free', 'deliver');
    await work(one, 'preview', 'paid', 'deliver');
    const ids: Ids = {
      one,
      other,
      charged: await work(one, 'full', 'a', 'deliver'),
      repeat: await work(one, 'full', 'a', 'deliver'),
      released: await work(one, 'full', 'b', 'release'),
      charged_by_other: await work(other, 'full', 'a', 'deliver'),
      undelivered: await work(one, 'full', 'c', 'settle'),
    };
    await ledger.refund(one, await work(one, 'full', 'd', 'deliver'));
    await ledger.post(one, { kind: 'adjust', amount: standardBilling.prices.full });
    t.deepEqual(await ledger.verify(), []);

    const undo = new Error('undone');
    for (const [what, { make, sentence }] of Object.entries(corruptions)) {
      let found: readonly string[] = [];
      const corrupted = database.transaction(async (sql) => {
        if (what === 'a remembered charge that was released')
          await sql.run("DELETE FROM repeat WHERE name <> 'content:c'");
        await make(sql, ids);
        found = await contradictions(sql, billing.prices);
        throw undo;
      });
      t.is(await t.throwsAsync(corrupted), undo, what);
      t.is(found.length, 1, `${what}: ${found.join(' ')}`);
      t.regex(found[0] ?? '', sentence, what);
    }
    t.deepEqual(await ledger.verify(), []);
  });

  test('verify accepts work done at a price of 0, whatever the price is now', async (t) => {
    const prices = { preview: standardBilling.prices.preview, full: 0 as never };
    const stores = await testStores(t, { ...standardBilling, prices }, newPlace);
    const account = await accountWith(stores, 10);
    await (await stores.ledger.reserve(account, { size: 'full', requestId: 'r' })).settle();
    t.deepEqual(await contradictions(stores.database, standardBilling.prices), []);
    const [, reserved] = await stores.ledger.statement(account);
    t.like(reserved, { kind: 'reserve', amount: 0 as never, note: 'price 0' });
    // Earlier versions did not record it: their entries are correct while the price is 0.
    await stores.database.transaction((sql) => settled(sql, account, 0, { payment: 'full' }));
    t.deepEqual(await stores.ledger.verify(), []);
    t.is((await contradictions(stores.database, standardBilling.prices)).length, 1);
  });
}
