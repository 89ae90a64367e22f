import { useEffect, useRef, useState } from 'preact/hooks';
import type { Page } from '../../../src/http/route/console/api.ts';
import { get, isSignedOut } from '../lib/console.ts';
import { messageOf } from '../lib/message.ts';

const nothing: Page<never> = { entries: [], next: null };

export interface Pages<Entry> {
  /** Undefined until the first page is loaded. */
  readonly entries: readonly Entry[] | undefined;
  /** Whether there are older entries. */
  readonly hasMore: boolean;
  readonly busy: boolean;
  /** Why the last request failed; empty otherwise. */
  readonly trouble: string;
  readonly more: () => void;
  /** Reloads the entries that are shown. */
  readonly reload: () => void;
}

const withQuery = (path: string, before: string | null) =>
  before === null ? path : `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams({ before })}`;

/**
 * A list under /console/api, page by page; another path is another list. The entries shown stay until those of the new
 * list are loaded. An expired session leads back to the sign-in.
 */
export function usePages<Entry>(path: string): Pages<Entry> {
  /** All loaded pages, joined. */
  const [page, setPage] = useState<Page<Entry>>();
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState('');
  /** Number of the latest request; answers to earlier ones are ignored. */
  const latest = useRef(0);

  /** Loads pages after `from`, or from the beginning, until there are `atLeast` entries. */
  const load = async (from: Page<Entry> | undefined, atLeast: number) => {
    latest.current += 1;
    const mine = latest.current;
    const isLatest = () => mine === latest.current;
    setBusy(true);
    try {
      let { entries, next } = from ?? nothing;
      do {
        const read: Page<Entry> = await get<Page<Entry>>(withQuery(path, next));
        entries = [...entries, ...read.entries];
        next = read.next;
      } while (isLatest() && next !== null && entries.length < atLeast);
      if (!isLatest()) return;
      setPage({ entries, next });
      setTrouble('');
    } catch (error) {
      if (isSignedOut(error)) location.reload();
      else if (isLatest()) {
        setTrouble(messageOf(error));
        if (!from) setPage(undefined);
      }
    } finally {
      if (isLatest()) setBusy(false);
    }
  };

  useEffect(() => {
    void load(undefined, 1);
    return () => {
      latest.current += 1;
    };
  }, [path]);

  const next = page?.next ?? null;
  return {
    entries: page?.entries,
    hasMore: next !== null,
    busy,
    trouble,
    more: () => {
      if (page && next !== null) void load(page, page.entries.length + 1);
    },
    reload: () => void load(undefined, page?.entries.length ?? 1),
  };
}
