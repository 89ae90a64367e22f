import type { Config } from '../config/readConfig.ts';
import type { Engine } from '../engine/engine.ts';
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
  let engine: Pick<Engine, 'stats'> | undefined;
  const opening = overrides.engine
    ? Promise.resolve(overrides.engine)
    : openEngine(config.engine, {
        pull: start.pull,
        observer,
        signal,
        memory: config.limits.memory,
        onEngine: (started) => {
          engine = started;
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
    const openingSteps = () => engine?.stats().opening ?? [];
    return await assemble(config, { ...start, ...overrides, opening, openingSteps, closeEngine });
  } catch (error) {
    await closeEngine();
    throw error;
  }
}
