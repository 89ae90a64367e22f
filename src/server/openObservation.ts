import type { ObserveConfig } from '../config/observe.ts';
import type { Config } from '../config/readConfig.ts';
import { listen, urlHere } from '../http/server.ts';
import type { Attempts } from '../limits/attempts.ts';
import type { Logger } from '../ops/log.ts';
import type { Metrics } from '../ops/metrics.ts';
import { version } from './installation.ts';
import type { OpenedEngine } from './openEngine.ts';
import type { Limits } from './openLimits.ts';

export type Observation = Awaited<ReturnType<typeof openObservation>>;

/**
 * Opens metrics and traces as configured; what is off is not loaded. `recorders`: called for every request, before the log;
 * `metricsUrl`: address of the metrics if they have a port of their own. Throws UserError if the port cannot be opened.
 */
export async function openObservation(
  { metricsPort: port, metricsHost: host, metricsToken: token, otlpUrl: url, otlpHeaders }: ObserveConfig,
  { logger, attempts }: { readonly logger: Logger; readonly attempts: Attempts },
) {
  const metrics =
    port === undefined && token === undefined ? undefined : new (await import('../ops/metrics.ts')).Metrics();
  const tracing = url
    ? (await import('../ops/tracing.ts')).openTracing({
        url,
        headers: otlpHeaders,
        version: version(),
        logger,
      })
    : undefined;
  // The port last: nothing behind it can fail and leave it open.
  const server =
    metrics && port !== undefined
      ? await listen(
          (await import('../http/route/metrics/route.ts')).metricsApp(metrics, token, { attempts, logger }),
          {
            host,
            port,
            timeout: 10,
            settings: { host: 'CUTOUT_METRICS_HOST', port: 'CUTOUT_METRICS_PORT' },
          },
        )
      : undefined;
  return {
    recorders: [...(tracing ? [tracing.record] : []), ...(metrics ? [metrics.record] : [])],
    metrics,
    metricsUrl: server && `${urlHere(host, server.address.port)}/metrics`,
    close: async () => {
      await server?.close(0);
      await tracing?.close().catch((error: unknown) => logger.warn({ err: error }, 'tracing'));
    },
  };
}

/** Watches what has metrics once the network is loaded. */
export function watchWork(
  metrics: Metrics,
  { engine, info, network, device, precision, onnxruntime }: OpenedEngine,
  config: Pick<Config, 'cutout'>,
  { scheduler, memory, downloads }: Pick<Limits, 'scheduler' | 'memory' | 'downloads'>,
): void {
  metrics.networkLoaded(info.loadMs + info.warmUpMs);
  metrics.install({
    version: version(),
    node: process.versions.node,
    network: network.name,
    device,
    precision: precision.precision,
    profile: config.cutout.profile,
    onnxruntime,
  });
  metrics.watch({
    admission: () => scheduler.stats,
    memory: () => memory.stats,
    downloads: () => downloads.running,
    engine: () => engine.stats(),
  });
}
