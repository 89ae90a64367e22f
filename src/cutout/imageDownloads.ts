import { AppError, excerpt, fail, type Reason } from '../errors.ts';
import type { Downloader } from '../fetch/download.ts';
import { DownloadError } from '../fetch/error.ts';
import type { Attempts } from '../limits/attempts.ts';
import type { DownloadLimit } from '../limits/downloads.ts';
import { limitReached, outOfMemory, tooManyDownloads } from '../limits/limitErrors.ts';
import type { MemoryBudget, MemoryReservation } from '../limits/memoryBudget.ts';
import type { RateLimit } from '../limits/rate.ts';
import { retained } from '../limits/retained.ts';
import { retrySeconds } from '../limits/retryAfter.ts';
import type { RequestTelemetry } from '../ops/telemetry.ts';

/** Field of an address; it decides the code of its errors. */
export type UrlField = 'image_url' | 'bg_image_url';

interface DownloadParts {
  readonly downloader: Downloader;
  /** Counts downloaded bytes until nobody uses them any more. */
  readonly memory: Pick<MemoryBudget, 'reserveUpload'>;
  readonly limit: DownloadLimit;
  /** Failed downloads, by account. */
  readonly failures: Attempts;
}

interface DownloadCall {
  readonly accountId: string;
  readonly telemetry: RequestTelemetry;
  /** Called once, before anything is fetched. Rejects with an AppError where nothing may be. */
  readonly precheck: () => Promise<void>;
  /** Whose window a 429 reports; absent: none. */
  readonly rate?: Pick<RateLimit, 'state'>;
}

/** Downloads of one request, and the memory of their bytes. */
export type ImageDownloads = Pick<RequestDownloads, 'check' | 'fetch' | 'retain' | 'end'>;

/** The downloads of one request; contacts nobody yet. */
export type DownloadsFor = (call: DownloadCall) => ImageDownloads;

/** Buffers of a connection, in bytes, counted before it is opened. */
const connectionBytes = 256 * 1024;

const downloadSourceOf = (accountId: string) => `download:${accountId}`;

/** A DownloadError in the words of the contract; any other error as it is. */
function publicDownloadError(error: unknown, field: UrlField, url: string): unknown {
  if (!(error instanceof DownloadError)) return error;
  if (error.kind === 'large') return fail('file_too_large', { cause: error });
  if (error.kind === 'memory') return outOfMemory(error);
  if (error.kind === 'url') return fail(`invalid_${field}`, { detail: error.reason, cause: error });
  return fail(field === 'image_url' ? 'failed_image_download' : 'failed_bg_download', {
    fill: { url: excerpt(url, 500) },
    detail: error.reason,
    cause: error,
  });
}

class RequestDownloads {
  readonly #parts: DownloadParts;
  readonly #call: DownloadCall;
  /** The memory of the images, held by the request and by all who retain it. */
  readonly #retained = retained(() => this.#reservation?.resize(0));
  /** Whether `precheck` has let this request pass. */
  #checked = false;
  #reservation: MemoryReservation | undefined;
  /** Bytes of the images that were downloaded. */
  #bytes = 0;
  #began = false;
  #ended = false;
  #failed = false;

  constructor(parts: DownloadParts, call: DownloadCall) {
    this.#parts = parts;
    this.#call = call;
  }

  /** Throws `invalid_image_url` or `invalid_bg_image_url` for an address that is not fetched here. */
  check(url: string, field: UrlField): URL {
    try {
      return this.#parts.downloader.check(url);
    } catch (error) {
      throw publicDownloadError(error, field, url);
    }
  }

  /**
   * Checks and downloads an address. Rejects with an AppError or the signal's reason. The bytes are counted until `end` was
   * called and everything that was retained is released.
   */
  async fetch(url: string, field: UrlField, signal: AbortSignal): Promise<Uint8Array> {
    const checked = this.check(url, field);
    if (!this.#checked) await this.#precheck();
    signal.throwIfAborted();
    const slot = await this.#slot();
    try {
      return await this.#download(checked, signal);
    } catch (error) {
      throw publicDownloadError(error, field, url);
    } finally {
      slot.leave();
    }
  }

  /** The bytes are kept until the returned function is called, even if the request ends before. */
  retain(): () => void {
    // Where the request has ended, its images were not counted any more.
    this.#reservation?.resize(this.#bytes);
    return this.#retained.retain();
  }

  /** The request is over, with `error` if it failed. Only the first call counts. Never rejects. */
  async end(error?: unknown): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    const inVain = this.#failed || (error instanceof AppError && error.status < 500);
    if (this.#began && inVain) await this.#parts.failures.failed(downloadSourceOf(this.#call.accountId));
    this.#retained.end();
  }

  /** An account with many failed downloads has to wait. */
  async #precheck(): Promise<void> {
    const { accountId, precheck } = this.#call;
    const wait = await this.#parts.failures.wait(downloadSourceOf(accountId));
    if (wait > 0)
      throw await this.#tooMany(
        `Too many downloads of this account failed. Try again in ${wait} seconds, or upload the image.`,
        { reason: 'downloads', retryAfter: wait },
      );
    await precheck();
    this.#checked = true;
  }

  async #slot(): Promise<{ leave: () => void }> {
    const slot = this.#parts.limit.enter(this.#call.accountId);
    if (slot.outcome === 'admitted') return slot;
    if (slot.outcome === 'total') throw tooManyDownloads();
    throw await this.#tooMany(
      'Too many images of this account are being downloaded. Try again when one has arrived.',
      { reason: 'concurrency', retryAfter: retrySeconds.downloads },
    );
  }

  async #tooMany(
    detail: string,
    why: { readonly reason: Reason; readonly retryAfter: number },
  ): Promise<AppError> {
    const { accountId, rate } = this.#call;
    return limitReached(detail, { ...why, ...(rate && { window: await rate.state(accountId) }) });
  }

  async #download(url: URL, signal: AbortSignal): Promise<Uint8Array> {
    const { accountId, telemetry } = this.#call;
    this.#reservation ??= this.#parts.memory.reserveUpload(accountId, 0);
    const reservation = this.#reservation;
    if (!reservation?.grow(connectionBytes)) throw outOfMemory();
    this.#began = true;
    try {
      const bytes = await telemetry.timed('fetch', () =>
        this.#parts.downloader.download(url, signal, reservation.grow),
      );
      this.#bytes += bytes.length;
      return bytes;
    } catch (error) {
      this.#failed = !(error instanceof DownloadError && error.kind === 'memory');
      if (error instanceof DownloadError) telemetry.add({ download: error.fault });
      throw error;
    } finally {
      reservation.resize(this.#bytes);
    }
  }
}

/**
 * Images by address (decision 0190). Before anything is requested, the caller has passed its route's precheck and
 * has a download slot and memory; that memory grows with the bytes that arrive.
 */
export const createDownloadsFor =
  (parts: DownloadParts): DownloadsFor =>
  (call) =>
    new RequestDownloads(parts, call);

const refuse = () => {
  throw new Error('no address is fetched here');
};

/** The downloads of local files: nothing is ever downloaded. */
export const noDownloads: DownloadsFor = () => ({
  check: refuse,
  fetch: refuse,
  retain: () => () => {},
  end: async () => {},
});
