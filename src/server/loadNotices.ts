import type { Engine } from '../engine/engine.ts';
import { openingSince } from '../engine/opening.ts';
import type { EngineStats } from '../engine/types.ts';
import type { Observer } from '../models/observer.ts';

const EVERY_MS = 1000;
const NOTICE_SECONDS = 10;

/**
 * The engine's `load`, which reports its progress to an observer: each of several steps within a second, and a
 * notice every ten seconds. TensorRT may take minutes for a step.
 */
export function loadWithNotices(
  engine: Pick<Engine, 'load'> & { stats(): Pick<EngineStats, 'opening'> },
  observer: Observer,
): Engine['load'] {
  return async (spec) => {
    let seconds = 0;
    let told = 0;
    const timer = setInterval(() => {
      seconds += EVERY_MS / 1000;
      const step = engine.stats().opening.find(({ network }) => network === spec.name);
      if (!step) return;
      if (step.steps > 1 && step.step !== told)
        observer.progress({ phase: 'open', network: spec.name, step });
      told = step.step;
      if (seconds % NOTICE_SECONDS === 0) observer.notice(`Opening ${openingSince(step)}.`);
    }, EVERY_MS);
    try {
      return await engine.load(spec);
    } finally {
      clearInterval(timer);
    }
  };
}
