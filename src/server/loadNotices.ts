import type { Engine } from '../engine/engine.ts';
import type { Observer } from '../models/observer.ts';

const EVERY_MS = 10_000;

/** The engine's `load` with a notice every ten seconds while it runs: batches may take minutes to warm up. */
export function loadWithNotices(
  engine: Pick<Engine, 'load'>,
  maxBatch: number,
  observer: Pick<Observer, 'notice'>,
): Engine['load'] {
  const batches = maxBatch > 1 ? `, with batches of up to ${maxBatch} images` : '';
  return async (spec) => {
    let seconds = 0;
    const timer = setInterval(() => {
      seconds += EVERY_MS / 1000;
      observer.notice(`${spec.name} is being opened and warmed up${batches}: ${seconds} s so far.`);
    }, EVERY_MS);
    try {
      return await engine.load(spec);
    } finally {
      clearInterval(timer);
    }
  };
}
