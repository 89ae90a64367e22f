import type { Values } from './database.ts';

/** Place of a row in a list that is ordered by time, then by id. */
export interface TimeCursor {
  /** Unix milliseconds. */
  readonly at: number;
  readonly id: string;
}

/** One page of such a list, newest first. */
export interface TimedPage {
  /** The last row already known; the page begins after it. */
  readonly before?: TimeCursor | undefined;
  /** The maximum number of rows. */
  readonly limit: number;
}

/** `@beforeAt` and `@beforeId`, of which every row is older without a cursor. */
export const cursorValues = (before: TimeCursor | undefined): Values => ({
  beforeAt: before?.at ?? Number.MAX_SAFE_INTEGER,
  beforeId: before?.id ?? '',
});
