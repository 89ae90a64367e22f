import type { ComponentChildren } from 'preact';
import type { Pages } from './usePages.ts';

/** The loaded entries, or a sentence if there are none, and a button for older ones. */
export function PagedList<Entry>({
  pages: { entries, hasMore, busy, trouble, more },
  empty,
  children,
}: {
  readonly pages: Pages<Entry>;
  /** Shown if the list has no entries. */
  readonly empty: string;
  readonly children: (entries: readonly Entry[]) => ComponentChildren;
}) {
  return (
    <>
      {trouble !== '' && (
        <p class="notice error" role="alert">
          {trouble}
        </p>
      )}
      {entries === undefined && trouble === '' && <p class="soft">Loading…</p>}
      {entries?.length === 0 && <p class="soft">{empty}</p>}
      {entries !== undefined && entries.length > 0 && children(entries)}
      {hasMore && (
        <p>
          <button type="button" disabled={busy} onClick={more}>
            {busy ? 'Loading…' : 'Show older'}
          </button>
        </p>
      )}
    </>
  );
}
