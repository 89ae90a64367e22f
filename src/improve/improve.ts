import { createHash, randomUUID } from 'node:crypto';
import { type AppError, fail } from '../errors.ts';
import { hashInPieces } from '../idempotency/hash.ts';
import { limitReached } from '../limits/limitErrors.ts';
import type { Sql } from '../store/database.ts';
import { type ImproveQuery, type ImproveRow, ImproveTable } from '../store/improveTable.ts';
import type { TimedPage } from '../store/page.ts';
import { type Bucket, folderBucket, type S3Options, s3Bucket } from './bucket.ts';

export type HandedIn = ImproveRow;

/** `type` is detected from the content: 'jpg', 'png', 'webp', or another format that the operator enables. */
interface HandIn extends Pick<ImproveRow, 'accountId' | 'type' | 'width' | 'height'> {
  readonly bytes: Uint8Array;
  /** Any name; the last part of a path is kept, at most 255 characters. */
  readonly filename?: string | undefined;
  /** A label of the customer, of which 255 characters are kept at most. */
  readonly tag?: string | undefined;
}

interface ImproveOptions {
  readonly table: ImproveTable;
  readonly bucket: Bucket;
  /** Images per account and UTC day; 0: no limit. */
  readonly perDay: number;
  /** Unix milliseconds. */
  readonly now: () => number;
}

const dayMilliseconds = 86_400_000;
/** Longer than any upload to the bucket takes: a pending row that old belongs to a server that died. */
const lostMilliseconds = 600_000;
const labelLength = 255;

/** Start of the UTC day of `at`. */
const dayOf = (at: number) => at - (at % dayMilliseconds);

/** 429 until the next UTC day. */
const usedUp = (at: number): AppError =>
  limitReached('The daily limit of submitted images is reached.', {
    retryAfter: Math.max(1, Math.ceil((dayOf(at) + dayMilliseconds - at) / 1000)),
  });

/** Images that customers hand in to improve the networks, the only images the service stores permanently. */
export class Improve {
  readonly #options: ImproveOptions;

  constructor(options: ImproveOptions) {
    this.#options = options;
  }

  /**
   * Stores the image and resolves with its id. Rejects with 429 if the quota of the day is used up, with `auth_invalid` if the
   * account was deleted, and if the bucket fails; then nothing is stored and the quota is not used.
   */
  async handIn(image: HandIn): Promise<string> {
    const { table, bucket, perDay, now } = this.#options;
    const at = now();
    const day = dayOf(at);
    const id = randomUUID();
    const row: ImproveRow = {
      ...image,
      id,
      at,
      object: `${new Date(at).toISOString().slice(0, 10).replaceAll('-', '/')}/${id}.${image.type}`,
      bytes: image.bytes.length,
      sha256: await sha256Of(image.bytes),
      filename: label(image.filename?.split(/[/\\]/).at(-1)),
      tag: label(image.tag),
    };
    // The row is inserted first: it takes its place in the quota of the day, also against concurrent calls.
    const placed = await table.insertPending(row, day, perDay === 0 ? Number.MAX_SAFE_INTEGER : perDay);
    if (placed === 'no account') throw fail('auth_invalid');
    if (placed === 'full') throw usedUp(at);
    try {
      await bucket.put(row.object, image.bytes, `image/${image.type === 'jpg' ? 'jpeg' : image.type}`);
    } catch (error) {
      await table.delete(id);
      throw error;
    }
    if (await table.markStored(row)) return id;
    await this.remove(row);
    throw fail('auth_invalid');
  }

  /** Rejects with 429 while the account may hand in no other image. */
  async checkQuota(accountId: string): Promise<void> {
    const { table, perDay, now } = this.#options;
    const at = now();
    if (perDay > 0 && (await table.countSince(accountId, dayOf(at))) >= perDay) throw usedUp(at);
  }

  list(query: ImproveQuery = {}): Promise<HandedIn[]> {
    return this.#options.table.list(query);
  }

  /** A page of an account's images, newest first. */
  page(accountId: string, page: TimedPage): Promise<HandedIn[]> {
    return this.#options.table.page(accountId, page);
  }

  /** Also finds an image whose removal has begun. */
  find(id: string): Promise<HandedIn | undefined> {
    return this.#options.table.any(id);
  }

  /** All of an image, or the bytes `from` to `to` (excluded). Undefined if the bucket does not have it. */
  bytes(image: HandedIn, from?: number, to?: number): Promise<Buffer | undefined> {
    return this.#options.bucket.get(image.object, from, to);
  }

  /** Removes bytes, then row, of an image that `ImproveTable.hide` hid. Repeatable if the bucket fails; the sweep does. */
  async remove({ id, object }: HandedIn): Promise<void> {
    await this.#options.bucket.delete(object);
    await this.#options.table.delete(id);
  }

  /** Removes hidden images and those that a server that died left unfinished. Returns their number. */
  async sweep(): Promise<number> {
    const { table, now } = this.#options;
    const lost = await table.pending(now() - lostMilliseconds);
    for (const image of lost) await this.remove(image);
    return lost.length;
  }
}

async function sha256Of(bytes: Uint8Array): Promise<string> {
  const hash = createHash('sha256');
  await hashInPieces(bytes, (piece) => hash.update(piece));
  return hash.digest('hex');
}

/** Returns a text without control characters, truncated; null if nothing is left. */
function label(text: string | undefined): string | null {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to drop
  const visible = text?.replace(/[\u0000-\u001f\u007f]/g, '').trim() ?? '';
  return Array.from(visible).slice(0, labelLength).join('') || null;
}

export interface OpenImproveOptions {
  readonly database: Sql;
  readonly perDay: number;
  readonly folder: string;
  /** Replaces the folder. */
  readonly s3: S3Options | undefined;
}

const sweepMilliseconds = 600_000;

export const openImprove = ({ database, perDay, folder, s3 }: OpenImproveOptions): Improve =>
  new Improve({
    table: new ImproveTable(database),
    bucket: s3 ? s3Bucket(s3) : folderBucket(folder),
    perDay,
    now: Date.now,
  });

/**
 * Sweeps now and on a timer that does not keep the process alive. `onError` receives the error of a failed
 * sweep; the next one tries again. Returns a function that stops it.
 */
export function keepSwept(improve: Improve, onError: (error: unknown) => void): () => void {
  const sweep = () => void improve.sweep().catch(onError);
  sweep();
  const timer = setInterval(sweep, sweepMilliseconds);
  timer.unref();
  return () => clearInterval(timer);
}
