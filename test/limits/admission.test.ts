import test from 'ava';
import { Admission, type AdmissionOutcome } from '../../src/limits/admission.ts';
import { TestClock } from '../support/books.ts';

const forever = () => new AbortController().signal;

function leave(outcome: AdmissionOutcome): void {
  if (outcome.outcome !== 'admitted') throw new Error('full');
  outcome.leave();
}

test('so many work, so many wait, the next is refused at once', async (t) => {
  const admission = new Admission({ running: 2, waiting: 1 }, () => 0);
  const first = await admission.enter(forever());
  await admission.enter(forever());
  const waiting = admission.enter(forever());
  t.deepEqual(admission.stats, { running: 2, waiting: 1 });
  t.deepEqual(await admission.enter(forever()), { outcome: 'full', retryAfter: 2 });
  leave(first);
  leave(first);
  t.is((await waiting).outcome, 'admitted');
  t.deepEqual(admission.stats, { running: 2, waiting: 0 });
});

test('who waits enters in the order it came', async (t) => {
  const admission = new Admission({ running: 1, waiting: 10 }, () => 0);
  const order: number[] = [];
  const work = async (n: number) => {
    const outcome = await admission.enter(forever());
    order.push(n);
    leave(outcome);
  };
  await Promise.all([1, 2, 3, 4, 5].map(work));
  t.deepEqual(order, [1, 2, 3, 4, 5]);
  t.deepEqual(admission.stats, { running: 0, waiting: 0 });
});

test('who goes away while waiting frees the place in the queue', async (t) => {
  const admission = new Admission({ running: 1, waiting: 1 }, () => 0);
  const first = await admission.enter(forever());
  const leaving = new AbortController();
  const gone = admission.enter(leaving.signal);
  leaving.abort(new Error('gone'));
  await t.throwsAsync(gone, { message: 'gone' });
  const next = admission.enter(forever());
  leave(first);
  leave(await next);
  t.deepEqual(admission.stats, { running: 0, waiting: 0 });
  await t.throwsAsync(admission.enter(leaving.signal), { message: 'gone' });
});

test('Retry-After grows with how long work takes, from 1 to 60', async (t) => {
  const clock = new TestClock();
  const admission = new Admission({ running: 1, waiting: 0 }, clock.now);
  const retryAfter = async () => {
    const outcome = await admission.enter(forever());
    return outcome.outcome === 'full' ? outcome.retryAfter : 0;
  };
  const seen: number[] = [];
  for (const milliseconds of [1, 20_000, 20_000, 900_000]) {
    const place = await admission.enter(forever());
    seen.push(await retryAfter());
    clock.forward(milliseconds);
    leave(place);
  }
  await admission.enter(forever());
  seen.push(await retryAfter());
  t.deepEqual(seen, [1, 1, 4, 6, 60]);
});
