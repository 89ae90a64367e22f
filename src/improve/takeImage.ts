import type { DownloadsFor } from '../cutout/imageDownloads.ts';
import { publicError } from '../cutout/publicError.ts';
import { readSource } from '../cutout/readSource.ts';
import type { Source } from '../cutout/request.ts';
import { type AppError, unavailable } from '../errors.ts';
import { writeFault } from '../files.ts';
import { probe } from '../image/probe.ts';
import type { ProbeLimits } from '../image/types.ts';
import { retrySeconds } from '../limits/retryAfter.ts';
import type { RequestTelemetry } from '../ops/telemetry.ts';
import type { Improve } from './improve.ts';

export interface HandInRequest {
  readonly source: Source;
  readonly filename: string | undefined;
  readonly tag: string | undefined;
}

interface HandInCall {
  readonly accountId: string;
  readonly signal: AbortSignal;
  readonly telemetry: RequestTelemetry;
}

/** Resolves with the image's id once it is stored. */
export type TakeImage = (request: HandInRequest, call: HandInCall) => Promise<string>;

interface TakeImageParts {
  readonly improve: Improve;
  readonly downloadsFor: DownloadsFor;
  readonly limits: ProbeLimits;
}

/** 503 where the folder of the images cannot be written, on a full disk for example; undefined for another error. */
const withoutRoom = (error: unknown): AppError | undefined =>
  writeFault(error) === undefined
    ? undefined
    : unavailable('store', 'The image cannot be stored at the moment. Try again.', {
        cause: error,
        retryAfter: retrySeconds.fullDisk,
      });

/** The use case of `/improve`: validates the image up to its header, as `cutout` does, and stores it. */
export const createTakeImage =
  ({ improve, downloadsFor, limits }: TakeImageParts): TakeImage =>
  async ({ source, filename, tag }, { accountId, signal, telemetry }) => {
    const downloads = downloadsFor({ accountId, telemetry, precheck: async () => {} });
    try {
      // An account whose quota is used up causes no download, and nothing of its image is read.
      await improve.checkQuota(accountId);
      const bytes = await readSource(source, { downloads, maxBytes: limits.maxBytes, signal });
      const { format, width, height } = await probe(bytes, limits);
      signal.throwIfAborted();
      const type = format === 'jpeg' ? 'jpg' : format;
      const id = await improve.handIn({ accountId, bytes, type, width, height, filename, tag });
      await downloads.end();
      return id;
    } catch (error) {
      const failure = withoutRoom(error) ?? publicError(error, signal);
      await downloads.end(failure);
      throw failure;
    }
  };
