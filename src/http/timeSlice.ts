/** Pieces of work per turn of the event loop; each takes about 0.1 ms. */
const maxPerTurn = 50;

let done = 0;
const waiting: (() => void)[] = [];

function next(): void {
  const works = waiting.splice(0, maxPerTurn);
  done = works.length;
  if (done > 0) setImmediate(next);
  for (const work of works) work();
}

/**
 * Schedules the work that follows the end of a connection or request: immediately, or in order over several
 * turns of the event loop if thousands of connections end at the same time, so that other requests are
 * answered in between. `work` must not throw.
 */
export function timeSlice(work: () => void): void {
  if (done === 0) setImmediate(next);
  if (done < maxPerTurn && waiting.length === 0) {
    done += 1;
    work();
  } else {
    waiting.push(work);
  }
}
