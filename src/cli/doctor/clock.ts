import { type Finding, note, ok, problem } from './finding.ts';

/** Milliseconds. Leases last 20 s, rate windows a minute. */
const noticeable = 1000;
const harmful = 10_000;

/** Compares this machine's clock with one that nodes share; `ask` resolves to its Unix milliseconds. */
export async function compareClocks(whose: string, ask: () => Promise<number>): Promise<Finding> {
  const before = Date.now();
  const theirs = await ask();
  // The clock was read at some time between question and answer.
  const off = theirs - (before + Date.now()) / 2;
  const said = `This machine's clock is ${Math.abs(off / 1000).toFixed(1)} s ${off > 0 ? 'behind' : 'ahead of'} that of ${whose}.`;
  const todo = 'Synchronise the clocks of both machines (chrony, systemd-timesyncd).';
  if (Math.abs(off) < noticeable) return ok('clock', `Synchronised with ${whose}.`);
  return Math.abs(off) < harmful ? note('clock', said, todo) : problem('clock', said, todo);
}
