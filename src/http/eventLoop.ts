import { setImmediate as turn } from 'node:timers/promises';

/** Milliseconds of work per turn of the event loop, after which other work waits for a later turn. */
const budgetMs = 5;

let spentMs = 0;
let scheduled = false;
const waiting: (() => void)[] = [];

function run(work: () => void): void {
  const start = performance.now();
  work();
  spentMs += performance.now() - start;
}

function next(): void {
  spentMs = 0;
  let done = 0;
  for (let work = waiting[done]; work && spentMs < budgetMs; work = waiting[done]) {
    done += 1;
    run(work);
  }
  waiting.splice(0, done);
  scheduled = waiting.length > 0;
  if (scheduled) setImmediate(next);
}

/**
 * Schedules work that thousands of connections may cause at the same time, such as that after their end:
 * immediately, or in order over several turns of the event loop, so that other requests are answered in between.
 * `work` must not throw.
 */
export function timeSlice(work: () => void): void {
  if (!scheduled) setImmediate(next);
  scheduled = true;
  if (spentMs < budgetMs && waiting.length === 0) run(work);
  else waiting.push(work);
}

/** The same for work with a result: returns or throws what `work` does, or a promise of it if it has to wait. */
export function timeSliced<T>(work: () => T): T | Promise<T> {
  let outcome: (() => T) | undefined;
  let ran = () => {};
  timeSlice(() => {
    try {
      const result = work();
      outcome = () => result;
    } catch (error) {
      outcome = () => {
        throw error;
      };
    }
    ran();
  });
  if (outcome) return outcome();
  return new Promise<void>((resolve) => {
    ran = resolve;
  }).then(() => (outcome as () => T)());
}

let last: Promise<unknown> = Promise.resolve();

/**
 * Resolves in a turn of the event loop that no other caller gets, in the order of the calls. Answers that are made piece by
 * piece wait for one before every piece, so that others are answered in between, however many such answers there are.
 */
export function ownTurn(): Promise<void> {
  const mine = last.then(() => turn());
  last = mine;
  return mine;
}
