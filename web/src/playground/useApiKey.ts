import { useEffect, useState } from 'preact/hooks';
import type { SessionInfo } from '../../../src/http/route/console/api.ts';
import { createKey, openLink, readSession } from '../lib/console.ts';
import { takeToken } from '../lib/link.ts';

const item = 'cutout-key';

/** The API key of this tab; it is discarded with the tab. */
const tabKey = {
  read: (): string => sessionStorage.getItem(item) ?? '',
  write: (key: string): void => {
    if (key === '') sessionStorage.removeItem(item);
    else sessionStorage.setItem(item, key);
  },
};

export interface ApiKey {
  readonly value: string;
  readonly change: (key: string) => void;
  /** Undefined until it is known. */
  readonly session: SessionInfo | undefined;
  /** The key to call with, created on demand for a signed-in visitor; undefined if there is none. */
  readonly obtain: () => Promise<string | undefined>;
}

/** The key of this tab. Nothing is created before the first request that needs it. */
export function useApiKey(): ApiKey {
  const [value, setValue] = useState(tabKey.read);
  const [session, setSession] = useState<SessionInfo>();
  useEffect(() => {
    const token = takeToken();
    // A link that was used before is no loss where the session that it opened goes on.
    const opened = token === undefined ? readSession() : openLink(token).catch(readSession);
    opened.then(setSession, () => setSession(undefined));
  }, []);
  const change = (key: string) => {
    tabKey.write(key);
    setValue(key);
  };
  const obtain = async () => {
    if (value !== '') return value;
    const { signedIn } = session ?? (await readSession());
    if (!signedIn) return undefined;
    const { key } = await createKey('Playground');
    change(key);
    return key;
  };
  return { value, change, session, obtain };
}
