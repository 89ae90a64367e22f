import type { Config } from '../config/readConfig.ts';
import type { OpeningStep } from '../engine/types.ts';
import type { Observer } from '../models/observer.ts';
import { openEngine } from './openEngine.ts';
import type { Overrides, Server, StartOptions } from './serverTypes.ts';

/**
 * The only place where a server is assembled: stores, shared state, observation, use case, HTTP. Opens
 * everything but the network, which continues to load, and resolves when the port is open. Rejects with the
 * errors of the parts, whose messages are for the operator.
 *
 * Loading the network takes longest, so it begins first, on the engine's threads, and everything else is
 * imported and opened concurrently (decision 0082): a static import here delays it.
 */
export async function openServer(
  config: Config,
  start: StartOptions,
  overrides: Overrides = {},
): Promise<Server> {
  const ending = new AbortController();
  const signal = AbortSignal.any([start.signal, ending.signal]);
  const observer: Observer = {
    notice: (text) => start.observer.notice(text),
    progress: (progress) => {
      if (progress.step) start.log.logger.info(progress.step, 'opening');
      start.observer.progress(progress);
    },
  };
  let openingSteps: () => readonly OpeningStep[] = () => [];
  const opening = overrides.engine
    ? Promise.resolve(overrides.engine)
    : openEngine(config.engine, {
        pull: start.pull,
        observer,
        signal,
        memory: config.limits.memory,
        onOpening: (steps) => {
          openingSteps = steps;
        },
      });
  // `ready` rejects with the same error; an error of the other parts is reported first.
  opening.catch(() => {});
  const closeEngine = async () => {
    ending.abort();
    await opening.then(
      ({ engine }) => engine.close(0),
      () => {},
    );
  };
  try {
    const { assemble } = await import('./assemble.ts');
    const steps = () => openingSteps();
    const parts = { opening, openingSteps: steps, closeEngine };
    return await assemble(config, { ...start, ...overrides, ...parts });
  } catch (error) {
    await closeEngine();
    throw error;
  }
}
