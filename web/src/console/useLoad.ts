import { useCallback, useEffect, useState } from 'preact/hooks';
import { get, isSignedOut } from '../lib/console.ts';
import { messageOf } from '../lib/message.ts';

export type Loaded<T> =
  | { readonly state: 'loading' }
  | { readonly state: 'failed'; readonly message: string }
  | { readonly state: 'here'; readonly value: T };

/** GET under /console/api, repeated by `reload`. An expired session leads back to the sign-in. */
export function useLoad<T>(path: string): Loaded<T> & { readonly reload: () => void } {
  const [loaded, set] = useState<Loaded<T>>({ state: 'loading' });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let wanted = true;
    get<T>(path).then(
      (value) => wanted && set({ state: 'here', value }),
      (error: unknown) => {
        if (isSignedOut(error)) location.reload();
        else if (wanted) set({ state: 'failed', message: messageOf(error) });
      },
    );
    return () => {
      wanted = false;
    };
  }, [path, turn]);
  const reload = useCallback(() => setTurn((now) => now + 1), []);
  return { ...loaded, reload };
}
