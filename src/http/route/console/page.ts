import { z } from 'zod';
import type { TimeCursor } from '../../../store/page.ts';
import { whole } from '../../requestParameters.ts';
import type { Page } from './api.ts';

/** Entries per page. */
const limit = whole.pipe(z.number().min(1).max(500)).default(50);

/** Page of a list with numbered entries: `before` is the number of the oldest entry already known. */
export const numberedPage = z.object({ before: whole.optional(), limit });

const timeCursor = z
  .string()
  .regex(/^\d{1,15}-.{1,100}$/u, 'expected the value of next in the page before')
  .transform((text): TimeCursor => {
    const dash = text.indexOf('-');
    return { at: Number(text.slice(0, dash)), id: text.slice(dash + 1) };
  });

/** Page of a list that is ordered by time, then by id. */
export const timedPage = z.object({ before: timeCursor.optional(), limit });

export const numberOf = ({ id }: { readonly id: number }): string => String(id);

/** The cursor of an entry, as `timedPage` parses it. */
export const timeCursorOf = ({ at, id }: TimeCursor): string => `${at}-${id}`;

/**
 * A page of `limit` entries. `read` is asked for one more, which shows whether there is another page;
 * `cursorOf` an entry is `before` of the next page (decision 0211).
 */
export async function readPage<Row, Entry>(
  limit: number,
  read: (limit: number) => Promise<readonly Row[]>,
  cursorOf: (row: Row) => string,
  present: (row: Row) => Entry,
): Promise<Page<Entry>> {
  const found = await read(limit + 1);
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  return {
    entries: rows.map(present),
    next: found.length > limit && last !== undefined ? cursorOf(last) : null,
  };
}
