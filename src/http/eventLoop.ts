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
 * Schedules work that thousands of connections may cause at once, such as that after their end: immediately, or in
 * order over several turns, so that others are answered in between. `work` must not throw.
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

/**
 * libuv accepts one connection per turn of the event loop: a client whose connection is behind two hundred others waits
 * for as many turns, however little each of them does.
 */
let accepted = 0;

/** A server calls this for each connection that it accepts. */
export function connectionAccepted(): void {
  accepted += 1;
}

/** The number of turns that work gives up to connections which are being accepted. */
const maxWait = 8;

/** Resolves in a turn after one in which no connection was accepted, or after `maxWait` turns. */
async function quietTurn(): Promise<void> {
  for (let waited = 0; waited < maxWait; waited += 1) {
    const before = accepted;
    await turn();
    if (accepted === before) return;
  }
}

/** Returns a function that resolves in a turn of the event loop that no other of its callers gets, in the order of the calls. */
function turns(): () => Promise<void> {
  let last: Promise<unknown> = Promise.resolve();
  return () => {
    const mine = last.then(quietTurn);
    last = mine;
    return mine;
  };
}

/** Before every piece of an answer in pieces, so that others are answered in between. */
export const ownTurn = turns();

/**
 * So do requests before they are begun: hundreds arrive in one packet, or in one turn on as many connections. Those that
 * were sent ahead of an answer have turns of their own, so that they delay nobody who waits for answers.
 */
export const turnToBegin = turns();
export const turnOfPipelined = turns();
