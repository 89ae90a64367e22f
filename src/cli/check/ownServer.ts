import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { credits } from '../../billing/price.ts';
import { ensureLocalAccount } from '../../commands/ensureLocalAccount.ts';
import { type Config, loadConfig } from '../../config/readConfig.ts';
import { createHealth } from '../../ops/health.ts';
import { createLogger } from '../../ops/log.ts';
import { openServer } from '../../server/openServer.ts';
import { type Output, progressOn } from '../modelsProgress.ts';

interface OwnServer {
  readonly address: string;
  readonly key: string;
  close(): Promise<void>;
}

/** Milliseconds that requests may take to end when the check is over. */
const closeMs = 2000;

/**
 * A server on a free loopback port with the configured network and image options, and with standard settings, an
 * account and a database of its own, which are deleted by `close`. Rejects with ModelError, EngineError or UserError.
 */
export async function openOwnServer(
  { engine, cutout }: Pick<Config, 'engine' | 'cutout'>,
  { pull, err, signal }: { readonly pull: boolean; readonly err: Output; readonly signal: AbortSignal },
): Promise<OwnServer> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'cutout-check-'));
  const removeData = () => rm(dataDir, { recursive: true, force: true });
  try {
    const standard = loadConfig({ CUTOUT_DATA_DIR: dataDir, CUTOUT_PORT: '0' });
    const health = createHealth();
    const observer = progressOn(err, engine.model);
    const server = await openServer(
      // Each request is to be worked on, so that times and charges can be compared.
      { ...standard, engine, cutout: { ...cutout, resultTtlSeconds: 0 } },
      {
        log: {
          logger: createLogger('silent', { write: () => {} }),
          dropped: () => 0,
          flush: async () => {},
        },
        health,
        pull,
        observer,
        signal,
      },
    );
    const close = async () => {
      health.stopping();
      await server.close(closeMs);
      await removeData();
    };
    try {
      const grant = credits(1000);
      const local = await ensureLocalAccount({ stores: server.stores, dataDir, grant });
      await server.ready();
      return { address: `http://127.0.0.1:${server.http.address.port}/`, key: local.key ?? '', close };
    } catch (error) {
      await close();
      throw error;
    } finally {
      observer.done();
    }
  } catch (error) {
    await removeData();
    throw error;
  }
}
