import { setImmediate as turn } from 'node:timers/promises';

/** A function that resolves in a turn of the event loop that no other of its callers gets, in the order of the calls. */
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
