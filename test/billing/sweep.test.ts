import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { Sweep } from '../../src/billing/sweep.ts';
import { StoreError } from '../../src/store/error.ts';
import { eventually } from '../fixtures/service.ts';

test('a sweep tells whether it reached the database, and nothing else that fails', async (t) => {
  let fault: Error | undefined;
  let sweeps = 0;
  const errors: unknown[] = [];
  const sweep = new Sweep({
    renewLease: async () => {
      sweeps++;
      if (fault) throw fault;
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

/** A sweep of which only the renewal does anything. */
const sweepOf = (renewLease: () => Promise<void>, everyMs: number) =>
  new Sweep({
    renewLease,
    ledger: { sweep: async () => 0, recover: async () => 0 },
    accounts: { flush: async () => {} },
    everyMs,
    onError: () => {},
  });

test('a call that was refused is followed by a sweep without the timer, and a thousand of them by few', async (t) => {
  let sweeps = 0;
  let full = true;
  const sweep = sweepOf(async () => {
    sweeps++;
    if (full) throw new StoreError('STORE_UNAVAILABLE', 'The disk is full.');
  }, 1000);
  t.teardown(() => sweep.stop());
  const began = performance.now();
  for (let i = 0; i < 1000; i++) {
    sweep.soon();
    if (i % 100 === 99) await sleep(50);
  }
  t.false(sweep.isReachable);
  const elapsed = performance.now() - began;
  t.true(sweeps >= 1 && sweeps <= 1 + elapsed / 200, `${sweeps} in ${elapsed} ms`);
  full = false;
  await eventually(() => sweep.isReachable);
});

test('a database that does not answer is not reachable after the time of a sweep, and is when it answers', async (t) => {
  let answer = () => {};
  const unanswered = () =>
    new Promise<void>((resolve) => {
      answer = resolve;
    });
  const sweep = sweepOf(unanswered, 100);
  t.teardown(() => sweep.stop());
  t.true(sweep.isReachable);
  await eventually(() => !sweep.isReachable);
  answer();
  await eventually(() => sweep.isReachable);
  answer();
});

test('a sweep that was stopped does not begin again', async (t) => {
  let sweeps = 0;
  const sweep = sweepOf(async () => void sweeps++, 10_000);
  sweep.soon();
  await sweep.stop();
  sweep.soon();
  await sleep(20);
  t.is(sweeps, 0);
});
