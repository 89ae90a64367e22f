import { publicError } from '../cutout/publicError.ts';
import type { Source } from '../cutout/request.ts';
import { loadSource } from '../cutout/source.ts';
import { fail } from '../errors.ts';
import type { Download } from '../fetch/download.ts';
import { probe } from '../image/probe.ts';
import type { ProbeLimits } from '../image/types.ts';
import type { Improve } from './improve.ts';

export interface HandInRequest {
  readonly source: Source;
  readonly filename: string | undefined;
  readonly tag: string | undefined;
}

export interface HandInCall {
  readonly accountId: string;
  readonly signal: AbortSignal;
}

/** Resolves with the image's id once it is kept. */
export type TakeImage = (request: HandInRequest, call: HandInCall) => Promise<string>;

export interface TakeImageParts {
  readonly improve: Improve;
  readonly download: Download;
  readonly limits: ProbeLimits;
}

/** The use case of `/improve`: checks the picture as `cutout` does, up to its header, and keeps it. */
export const createTakeImage =
  ({ improve, download, limits }: TakeImageParts): TakeImage =>
  async ({ source, filename, tag }, { accountId, signal }) => {
    try {
      const bytes = await loadSource(source, { download, maxBytes: limits.maxBytes, signal });
      const { format, width, height } = await probe(bytes, limits);
      signal.throwIfAborted();
      const type = format === 'jpeg' ? 'jpg' : format;
      const kept = await improve.handIn({ accountId, bytes, type, width, height, filename, tag });
      if (kept.outcome === 'kept') return kept.id;
      throw fail('rate_limit_exceeded', {
        detail: 'The images that may be handed in today are used up.',
        headers: { 'Retry-After': String(kept.retryAfter) },
      });
    } catch (error) {
      throw publicError(error, signal);
    }
  };
