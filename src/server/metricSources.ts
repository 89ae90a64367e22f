import type { Ledger } from '../billing/ledger.ts';
import { toCredits } from '../billing/price.ts';
import type { Config } from '../config/readConfig.ts';
import type { OpeningStep } from '../engine/types.ts';
import type { Metrics } from '../ops/metrics.ts';
import { version } from './installation.ts';
import type { OpenedEngine } from './openEngine.ts';
import type { Server } from './serverTypes.ts';

interface WatchedServer extends Pick<Server, 'idempotency'> {
  readonly ledger: Ledger;
  readonly droppedLines: () => number;
  readonly opening: () => readonly OpeningStep[];
  readonly isReady: () => boolean;
}

/** Metrics that are available while the network is loading. */
export function watchServer(metrics: Metrics, watched: WatchedServer): void {
  const { ledger, idempotency, droppedLines, opening, isReady } = watched;
  metrics.watch({
    droppedLines,
    opening,
    ready: isReady,
    results: () => idempotency.stats,
    reservations: () => ledger.openReservations(),
    balances: async () => toCredits(await ledger.balances()),
    booked: async () =>
      (await ledger.booked()).map(({ amount, ...row }) => ({ ...row, credits: toCredits(amount) })),
  });
}

/** Metrics that are available once the network is loaded. */
export function watchWork(
  metrics: Metrics,
  { engine, info, network, precision, onnxruntime }: OpenedEngine,
  config: Pick<Config, 'engine' | 'cutout'>,
  { scheduler, memory, downloads }: Pick<Server, 'scheduler' | 'memory' | 'downloads'>,
): void {
  metrics.networkLoaded(info.loadMs + info.warmUpMs);
  metrics.install({
    version: version(),
    node: process.versions.node,
    network: network.name,
    device: config.engine.device,
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
