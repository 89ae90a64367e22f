import type { Config } from '../config/readConfig.ts';
import { createDownloadsFor } from '../cutout/imageDownloads.ts';
import { largestJobBytes } from '../cutout/resourceEstimate.ts';
import { UserError } from '../errors.ts';
import { createDownloader, type DownloadOptions, downloadRules } from '../fetch/download.ts';
import { largestBody } from '../http/middleware/receiveBody.ts';
import type { ProbeLimits } from '../image/types.ts';
import type { Attempts } from '../limits/attempts.ts';
import { DownloadLimit } from '../limits/downloads.ts';
import { FairScheduler } from '../limits/fairScheduler.ts';
import { MemoryBudget, minRoom, roomForBody } from '../limits/memoryBudget.ts';
import { PixelJobs } from '../limits/pixelJobs.ts';
import type { Logger } from '../ops/log.ts';
import { countedShare, describeAllocator, memoryLimit } from '../ops/memory.ts';
import type { OpenedEngine } from './openEngine.ts';

const mb = (bytes: number) => Math.round(bytes / 1e6);

interface MemoryUse {
  /** The engine with its network warmed up. */
  readonly opened: Pick<OpenedEngine, 'engine' | 'threads' | 'network' | 'second'>;
  /** Whether points and boxes can be used. */
  readonly selects: boolean;
  readonly limits: ProbeLimits;
  readonly logger: Logger;
}

/** The maximum number of bytes of cached results in this process. */
const cacheBytes = ({ cutout, redis }: Pick<Config, 'cutout' | 'redis'>): number =>
  cutout.resultTtlSeconds > 0 && !redis.url ? cutout.cacheMegabytes * 1e6 : 0;

/** The maximum number of bytes of images encoded for points and boxes. */
export const embeddingBytes = ({ resultTtlSeconds, cacheMegabytes }: Config['cutout']): number =>
  resultTtlSeconds > 0 ? cacheMegabytes * 5e5 : 0;

/** Bytes of a second network that is fetched later: u2net takes 64 MB in 8 bits and 180 MB in floats. */
const secondBytes = 200e6;

/** Bytes of the networks for points and boxes, once they are loaded (167 MB in floats, 114 in bf16). */
const selectorBytes = 200e6;

/**
 * Bytes of refinement for each value of the network's output, where all of it is uncertain (native/matte/refine.h and
 * colour_sampling.h). Any client can send such an image.
 */
const refinementBytes = 150;

/** Bytes to leave for a second network that is fetched later. Where they are not there, it is left out. */
function roomForSecond({ second }: Pick<OpenedEngine, 'second'>, room: number, logger: Logger): number {
  if (!second || second.loaded) return 0;
  if (room - secondBytes >= roomForBody(largestBody)) return secondBytes;
  second.stop();
  logger.warn({ network: second.name, wantedMb: mb(secondBytes) }, 'memory: no second network');
  return 0;
}

/** Sets the memory budget to the limit of the process minus what it uses now. Throws UserError if that is too little for any request. */
export function sizeMemoryBudget(
  config: Pick<Config, 'limits' | 'cutout' | 'redis'>,
  memory: MemoryBudget,
  { limits, opened, selects, logger }: MemoryUse,
): void {
  const limit = memoryLimit(config.limits.memory);
  // A run of the network needs as much as the warm-up did, and refinement may need more of the same memory afterwards.
  const { keptBytes } = opened.engine.stats();
  const job = Math.max(keptBytes, refinementBytes * opened.network.width * opened.network.height);
  const more = opened.threads.workers * job - keptBytes;
  const selecting = selects ? selectorBytes + embeddingBytes(config.cutout) : 0;
  const base = process.memoryUsage.rss() + more + cacheBytes(config) + selecting;
  const left = Math.round(countedShare * limit.bytes - base);
  const room = left - roomForSecond(opened, left, logger);
  const facts = {
    limitMb: mb(limit.bytes),
    from: limit.from,
    baseMb: mb(base),
    requestsMb: mb(room),
    allocator: describeAllocator() ?? 'glibc, unbounded (MALLOC_ARENA_MAX bounds it)',
  };
  if (room < minRoom)
    throw new UserError(
      `${mb(limit.bytes)} MB (${limit.from}) are not enough memory: the process with its network and cached results takes ${mb(base)}. Give it ${mb((base + 2 * minRoom) / countedShare)} MB, or set CUTOUT_KEEP_MEGABYTES lower.`,
    );
  memory.bound({ room, largestWork: largestJobBytes(limits), largestBody });
  logger.info(facts, 'memory');
  if (room < roomForBody(largestBody))
    logger.warn(
      { ...facts, wantedMb: mb(roomForBody(largestBody)) },
      'memory: the largest bodies may be refused with 503',
    );
  if (memory.maxWork < largestJobBytes(limits))
    logger.warn(
      { ...facts, largestMegapixels: Math.floor(memory.maxWork / largestJobBytes({ maxPixels: 1e6 })) },
      'memory: larger images may be refused with 400 resolution_too_high',
    );
}

/** Bounds of what a process does at a time. */
export type Limits = ReturnType<typeof openLimits>;

interface LimitsParts {
  readonly logger: Logger;
  /** Failed downloads, by account. */
  readonly fetchFailures: Attempts;
  /** Replaces rules of downloads. */
  readonly rules: Partial<DownloadOptions> | undefined;
  /** Images processed at a time. Read again at each use, since the device may still be measured. */
  readonly running: () => number;
  /** Called once, when image libraries hold more than half of the threads for longer than they may. */
  readonly onStuck: (() => void) | undefined;
}

/** Creates the bounds as configured. Memory has none until `sizeMemoryBudget`. */
export function openLimits(
  config: Pick<Config, 'fetch' | 'limits'>,
  { logger, fetchFailures, rules, running, onStuck }: LimitsParts,
) {
  const { mode, allow: allowHosts, ports, concurrency: total, accountConcurrency: perAccount } = config.fetch;
  const memory = new MemoryBudget();
  const downloads = new DownloadLimit({ perAccount, total });
  const downloader = createDownloader({ ...downloadRules, mode, allowHosts, ports, ...rules });
  const pixelJobs = new PixelJobs({
    get threads() {
      return running();
    },
    onOverdue: (overdue) => logger.warn({ overdue, threads: running() }, 'an image job takes too long'),
    onStuck: (overdue) => {
      logger.error({ overdue, threads: running() }, 'image jobs do not end');
      onStuck?.();
    },
  });
  const scheduler = new FairScheduler(
    {
      get running() {
        return running();
      },
      overdue: () => pixelJobs.overdue,
      waitMs: config.limits.queueSeconds * 1000 || Number.POSITIVE_INFINITY,
      memory,
    },
    () => performance.now(),
  );
  const downloadsFor = createDownloadsFor({ downloader, memory, limit: downloads, failures: fetchFailures });
  return { memory, downloads, downloadsFor, scheduler, pixelJobs };
}
