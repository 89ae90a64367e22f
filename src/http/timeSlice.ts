/** Pieces of work in one turn of the event loop; each takes about 0.1 ms. */
const mostATurn = 50;

let done = 0;
const waiting: (() => void)[] = [];

function next(): void {
  const works = waiting.splice(0, mostATurn);
  done = works.length;
  if (done > 0) setImmediate(next);
  for (const work of works) work();
}

/**
 * Runs what follows when a connection or a request ends: at once, or some turns of the event loop later, in order, where
 * thousands of connections end in the same moment. Others are answered in between. `work` must not throw.
 */
export function timeSlice(work: () => void): void {
  if (done === 0) setImmediate(next);
  if (done < mostATurn && waiting.length === 0) {
    done += 1;
    work();
  } else {
    waiting.push(work);
  }
}
