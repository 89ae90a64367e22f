import { useCallback, useEffect, useState } from 'preact/hooks';
import { ConsoleError, get } from '../lib/console.ts';

export type Loaded<T> =
  | { readonly state: 'loading' }
  | { readonly state: 'failed'; readonly message: string }
  | { readonly state: 'here'; readonly value: T };

/** An error as a sentence for people. */
export const messageOf = (error: unknown): string =>
  error instanceof TypeError
    ? 'The service cannot be reached.'
    : error instanceof Error
      ? error.message
      : String(error);

/** GET under /console/api, repeated by `reload`. An expired session leads back to the sign-in. */
export function useLoad<T>(path: string): Loaded<T> & { readonly reload: () => void } {
  const [loaded, set] = useState<Loaded<T>>({ state: 'loading' });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let wanted = true;
    get<T>(path).then(
      (value) => wanted && set({ state: 'here', value }),
      (error: unknown) => {
        if (error instanceof ConsoleError && error.status === 401) location.reload();
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
