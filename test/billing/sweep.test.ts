import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { startSweep } from '../../src/billing/sweep.ts';
import { StoreError } from '../../src/store/error.ts';
import { eventually } from '../fixtures/service.ts';

test('a sweep tells whether it reached the database, and nothing else that fails', async (t) => {
  let fault: Error | undefined;
  let sweeps = 0;
  const errors: unknown[] = [];
  const sweep = startSweep({
    lease: {
      renew: async () => {
        sweeps++;
        if (fault) throw fault;
      },
    },
    ledger: { sweep: async () => 0, recover: async () => 0 },
    accounts: { flush: async () => {} },
    everyMs: 1,
    onError: (error) => errors.push(error),
  });
  t.teardown(() => sweep.stop());
  const oneMore = async () => {
    const before = sweeps;
    await eventually(async () => {
      await sleep(1);
      return sweeps > before + 1;
    });
  };
  t.true(sweep.isReachable);
  fault = new Error('something else');
  await oneMore();
  t.true(sweep.isReachable);
  fault = new StoreError('STORE_UNAVAILABLE', 'The database is away.');
  await oneMore();
  t.false(sweep.isReachable);
  t.true(errors.includes(fault));
  fault = undefined;
  await oneMore();
  t.true(sweep.isReachable);
});
