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

/** Returns a function that resolves in a turn of the event loop that no other of its callers gets, in the order of the calls. */
function turns(): () => Promise<void> {
  let last: Promise<unknown> = Promise.resolve();
  return () => {
    const mine = last.then(() => turn());
    last = mine;
    return mine;
  };
}

/**
 * Answers that are made piece by piece wait for a turn before every piece, so that others are answered in between, however
 * many such answers there are.
 */
export const ownTurn = turns();

/** So do requests that were sent ahead of an answer: hundreds arrive in one packet. */
export const turnOfPipelined = turns();
