import type { Config } from '../config/config.ts';
import { openEngine } from './openEngine.ts';
import type { Overrides, Server, StartOptions } from './server.ts';

/**
 * The one place where a server is put together: stores, shared state, observation, use case, HTTP. Opens everything but
 * the network, which goes on loading, and resolves when the port is open. Rejects with what the parts throw; the
 * messages are for the operator.
 *
 * The network is what a start waits for, so its opening begins first, on the engine's threads, and everything else is
 * imported and opened beside it (docs/decisions/0082): what is imported here statically delays it.
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
    : openEngine(config.engine, { pull: start.pull, observer: start.observer, signal });
  // `ready` rejects with it; a fault of the rest comes first.
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
