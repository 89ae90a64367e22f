import type { Config } from '../config/readConfig.ts';
import { PROFILES } from '../cutout/qualityProfile.ts';
import { openEngine } from './openEngine.ts';
import type { Overrides, Server, StartOptions } from './serverTypes.ts';

/**
 * The only place where a server is assembled: stores, shared state, observation, use case, HTTP. Opens
 * everything but the network, which continues to load, and resolves when the port is open. Rejects with the
 * errors of the parts, whose messages are for the operator.
 *
 * Loading the network takes longest, so it begins first, on the engine's threads, and everything else is
 * imported and opened concurrently (docs/decisions/0082): a static import here delays it.
 */
export async function openServer(
  config: Config,
  start: StartOptions,
  overrides: Overrides = {},
): Promise<Server> {
  const ending = new AbortController();
  const signal = AbortSignal.any([start.signal, ending.signal]);
  const opening = overrides.engine
    ? Promise.resolve(overrides.engine)
    : openEngine(config.engine, PROFILES[config.cutout.profile], {
        pull: start.pull,
        observer: start.observer,
        signal,
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
    return await assemble(config, { ...start, ...overrides, opening, closeEngine });
  } catch (error) {
    await closeEngine();
    throw error;
  }
}
