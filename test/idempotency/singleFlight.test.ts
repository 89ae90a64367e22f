import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { byHandle, SingleFlight } from '../../src/idempotency/singleFlight.ts';

/** Work that ends when the test says so. */
function controlled<T>() {
  let end: { resolve: (value: T) => void; reject: (error: unknown) => void } | undefined;
  const runs: AbortSignal[] = [];
  return {
    runs,
    work: (signal: AbortSignal) => {
      runs.push(signal);
      return new Promise<T>((resolve, reject) => {
        end = { resolve, reject };
      });
    },
    resolve: (value: T) => end?.resolve(value),
    reject: (error: unknown) => end?.reject(error),
  };
}

/** Counts who has a share of it. */
class Counted<T> {
  readonly value: T;
  shares = 1;

  constructor(value: T) {
    this.value = value;
  }

  duplicate(): this {
    this.shares++;
    return this;
  }

  async end(): Promise<void> {
    this.shares--;
  }
}

const forever = () => new AbortController().signal;
const never = () => Promise.reject(new Error('must not run'));

test('who asks while it runs gets the same value, and nothing runs twice', async (t) => {
  const flights = new SingleFlight<object>();
  const first = controlled<object>();
  const all = [flights.join('k', first.work, forever()), flights.join('k', never, forever())];
  await turn();
  const value = {};
  first.resolve(value);
  for (const one of await Promise.all(all)) t.is(one, value);
  t.is(first.runs.length, 1);
  t.is(flights.size, 0);
});

test('other keys run on their own', async (t) => {
  const flights = new SingleFlight<number>();
  t.deepEqual(
    await Promise.all([1, 2, 3].map((n) => flights.join(`k${n}`, async () => n, forever()))),
    [1, 2, 3],
  );
});

test('after a failure the next one runs its own work; each gets its own error', async (t) => {
  const flights = new SingleFlight<string>();
  let running = 0;
  const order: string[] = [];
  const attempt = (name: string, fails: boolean) =>
    flights.join(
      'k',
      async () => {
        t.is(++running, 1);
        await turn();
        running--;
        order.push(name);
        if (fails) throw new Error(`${name} failed`);
        return name;
      },
      forever(),
    );
  const settled = await Promise.allSettled([
    attempt('a', true),
    attempt('b', true),
    attempt('c', false),
    attempt('d', false),
  ]);
  t.deepEqual(
    settled.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.message)),
    ['a failed', 'b failed', 'c', 'c'],
  );
  t.deepEqual(order, ['a', 'b', 'c']);
});

test('who leaves does not stop the work of those who stay, not even when it was the first', async (t) => {
  const flights = new SingleFlight<number>();
  const first = controlled<number>();
  const leaving = new AbortController();
  const one = flights.join('k', first.work, leaving.signal);
  const other = flights.join('k', never, forever());
  await turn();
  leaving.abort(new Error('gone'));
  await t.throwsAsync(one, { message: 'gone' });
  t.false(first.runs[0]?.aborted);
  first.resolve(7);
  t.is(await other, 7);
});

test('the last one to leave stops the work', async (t) => {
  const flights = new SingleFlight<number>();
  const first = controlled<number>();
  const [a, b] = [new AbortController(), new AbortController()];
  const both = [flights.join('k', first.work, a.signal), flights.join('k', never, b.signal)];
  await turn();
  a.abort(new Error('a gone'));
  b.abort(new Error('b gone'));
  const settled = await Promise.allSettled(both);
  t.deepEqual(
    settled.map((one) => one.status === 'rejected' && one.reason.message),
    ['a gone', 'b gone'],
  );
  t.true(first.runs[0]?.aborted);
});

test('who comes while stopped work winds down waits for its end, then runs', async (t) => {
  const flights = new SingleFlight<number>();
  const first = controlled<number>();
  const leaving = new AbortController();
  const gone = flights.join('k', first.work, leaving.signal);
  await turn();
  leaving.abort(new Error('gone'));
  await t.throwsAsync(gone);
  let started = false;
  const next = flights.join(
    'k',
    async () => {
      started = true;
      return 2;
    },
    forever(),
  );
  await turn();
  t.false(started);
  first.reject(new Error('stopped'));
  t.is(await next, 2);
  t.true(started);
});

test('work that succeeds after all its callers aborted serves callers that joined since', async (t) => {
  const flights = new SingleFlight<number>();
  const first = controlled<number>();
  const leaving = new AbortController();
  const gone = flights.join('k', first.work, leaving.signal);
  await turn();
  leaving.abort(new Error('gone'));
  await t.throwsAsync(gone);
  const next = flights.join('k', never, forever());
  first.resolve(1);
  t.is(await next, 1);
});

test('who has left before asking runs nothing', async (t) => {
  const flights = new SingleFlight<number>();
  await t.throwsAsync(flights.join('k', never, AbortSignal.abort(new Error('gone'))), { message: 'gone' });
  t.is(flights.size, 0);
});

test('waiting leaves no listeners behind', async (t) => {
  const flights = new SingleFlight<number>();
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--;
    remove(...args);
  };
  for (let i = 0; i < 10; i++) await flights.join('k', async () => i, signal);
  t.is(listeners, 0);
});

test('everyone who waits at the end has a share, who left or comes later has none', async (t) => {
  const flights = new SingleFlight<Counted<string>>(byHandle());
  const work = controlled<Counted<string>>();
  const leaving = new AbortController();
  const stay = [flights.join('k', work.work, forever()), flights.join('k', never, forever())];
  const gone = flights.join('k', never, leaving.signal);
  await turn();
  leaving.abort(new Error('gone'));
  await t.throwsAsync(gone, { message: 'gone' });
  const value = new Counted('value');
  work.resolve(value);
  t.deepEqual(await Promise.all(stay), [value, value]);
  t.is(value.shares, 2);
});

test('what nobody waits for any more is not used', async (t) => {
  const flights = new SingleFlight<Counted<string>>(byHandle());
  const work = controlled<Counted<string>>();
  const leaving = new AbortController();
  const gone = flights.join('k', work.work, leaving.signal);
  await turn();
  leaving.abort(new Error('gone'));
  await t.throwsAsync(gone);
  const value = new Counted('value');
  work.resolve(value);
  await turn();
  t.is(value.shares, 0);
  t.is(flights.size, 0);
});

test('who leaves after the work ended has a share all the same, and is the one to end it', async (t) => {
  const flights = new SingleFlight<Counted<string>>(byHandle());
  const leaving = new AbortController();
  const value = new Counted('value');
  const work = async () => value;
  const join = flights.join('k', work, leaving.signal);
  // In the turn in which the work ends, before its caller goes on.
  while (flights.size > 0) await undefined;
  leaving.abort(new Error('gone'));
  t.is(await join, value);
  t.is(value.shares, 1);
});
