import { setImmediate as turn } from 'node:timers/promises';

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
