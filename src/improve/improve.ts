import { createHash, randomUUID } from 'node:crypto';
import type { ImproveQuery, ImproveRow, ImproveTable } from '../store/improveTable.ts';
import type { TimedPage } from '../store/page.ts';
import type { Bucket } from './bucket.ts';

export type HandedIn = ImproveRow;

interface HandIn {
  readonly accountId: string;
  readonly bytes: Uint8Array;
  /** By content: 'jpg', 'png', 'webp', or what the operator allows besides. */
  readonly type: string;
  readonly width: number;
  readonly height: number;
  /** Any name; only its last part is kept, at most 255 characters. */
  readonly filename?: string | undefined;
  /** At most 255 characters are kept. */
  readonly tag?: string | undefined;
}

type HandInOutcome =
  | { readonly outcome: 'kept'; readonly id: string }
  /** The day's images are used up; whole seconds until the next UTC day. */
  | { readonly outcome: 'refused'; readonly retryAfter: number }
  /** The account was deleted before the image was kept; nothing of it is left. */
  | { readonly outcome: 'no account' };

interface ImproveOptions {
  readonly table: ImproveTable;
  readonly bucket: Bucket;
  /** Images an account may hand in on a UTC day; 0 = any number. */
  readonly perDay: number;
  /** Unix milliseconds. */
  readonly now: () => number;
}

const dayMilliseconds = 86_400_000;
/** Longer than a bucket may take: a row that old without bytes belongs to a server that died. */
const lostMilliseconds = 600_000;
const labelLength = 255;

/** When the UTC day of `at` began. */
const dayOf = (at: number) => at - (at % dayMilliseconds);
const untilTomorrow = (at: number) => Math.max(1, Math.ceil((dayOf(at) + dayMilliseconds - at) / 1000));

/** The images customers hand in to improve the networks: the only ones that are kept. */
export class Improve {
  readonly #options: ImproveOptions;

  constructor(options: ImproveOptions) {
    this.#options = options;
  }

  /** Keeps the image before it resolves. Rejects when the bucket fails; then nothing is kept and the day not used. */
  async handIn(image: HandIn): Promise<HandInOutcome> {
    const { table, bucket, perDay, now } = this.#options;
    const at = now();
    const day = dayOf(at);
    const id = randomUUID();
    const row: ImproveRow = {
      id,
      accountId: image.accountId,
      at,
      object: `${new Date(at).toISOString().slice(0, 10).replaceAll('-', '/')}/${id}.${image.type}`,
      type: image.type,
      bytes: image.bytes.length,
      width: image.width,
      height: image.height,
      sha256: createHash('sha256').update(image.bytes).digest('hex'),
      filename: label(image.filename?.split(/[/\\]/).at(-1)),
      tag: label(image.tag),
    };
    // The row first: it takes the place in the day's count, also against calls at the same time.
    const placed = await table.insertPending(row, day, perDay === 0 ? Number.MAX_SAFE_INTEGER : perDay);
    if (placed === 'no account') return { outcome: placed };
    if (placed === 'full') return { outcome: 'refused', retryAfter: untilTomorrow(at) };
    try {
      await bucket.put(row.object, image.bytes, `image/${image.type === 'jpg' ? 'jpeg' : image.type}`);
    } catch (error) {
      await table.delete(id);
      throw error;
    }
    if (await table.markStored(row)) return { outcome: 'kept', id };
    await this.remove(row);
    return { outcome: 'no account' };
  }

  /** Whole seconds until the account may hand in another image; 0: it may now. */
  async wait(accountId: string): Promise<number> {
    const { table, perDay, now } = this.#options;
    const at = now();
    if (perDay === 0 || (await table.countSince(accountId, dayOf(at))) < perDay) return 0;
    return untilTomorrow(at);
  }

  list(query: ImproveQuery = {}): Promise<HandedIn[]> {
    return this.#options.table.list(query);
  }

  /** Those of an account, newest first. */
  page(accountId: string, page: TimedPage): Promise<HandedIn[]> {
    return this.#options.table.page(accountId, page);
  }

  /** Also one whose removal was begun. */
  find(id: string): Promise<HandedIn | undefined> {
    return this.#options.table.any(id);
  }

  /** Undefined when the bucket has lost it. */
  bytes(image: HandedIn): Promise<Buffer | undefined> {
    return this.#options.bucket.get(image.object);
  }

  /**
   * Removes the bytes, then the row of an image that was hidden (`ImproveTable.hide`). Where the bucket fails it can be done
   * again, and the sweep does it.
   */
  async remove({ id, object }: HandedIn): Promise<void> {
    await this.#options.bucket.delete(object);
    await this.#options.table.delete(id);
  }

  /** Removes what is hidden, and what a server that died left half handed in. Gives how many. */
  async sweep(): Promise<number> {
    const { table, now } = this.#options;
    const lost = await table.pending(now() - lostMilliseconds);
    for (const image of lost) await this.remove(image);
    return lost.length;
  }
}

/** Without control characters, cut to length; null when nothing is left. */
function label(text: string | undefined): string | null {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to drop
  const visible = text?.replace(/[\u0000-\u001f\u007f]/g, '').trim() ?? '';
  return Array.from(visible).slice(0, labelLength).join('') || null;
}
