import test from 'ava';
import { usage } from '../../src/billing/entries.ts';
import type { Sql } from '../../src/store/database.ts';
import { testStores } from '../support/stores.ts';

test('the usage of an account is read by an index on its entries, whatever others have done', async (t) => {
  const { database } = await testStores(t);
  const plan: string[] = [];
  const explained: Pick<Sql, 'all'> = {
    all: async (text, parameters) => {
      const rows = await database.all<{ readonly detail: string }>(`EXPLAIN QUERY PLAN ${text}`, parameters);
      plan.push(...rows.map(({ detail }) => detail));
      return [];
    },
  };
  await usage(explained as Sql, { from: 0, to: 1 }, 'acc');
  t.true(
    plan.some((step) => /SEARCH settled USING INDEX entry_\w+ \(account_id=\?/.test(step)),
    plan.join('\n'),
  );
  t.false(
    plan.some((step) => step.startsWith('SCAN')),
    plan.join('\n'),
  );
});
