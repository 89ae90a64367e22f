import type { ComponentChildren } from 'preact';
import type { Loaded } from './useLoad.ts';

/** The loaded value, a loading message or an error. */
export function Show<T>({
  loaded,
  children,
}: {
  readonly loaded: Loaded<T>;
  readonly children: (value: T) => ComponentChildren;
}) {
  if (loaded.state === 'loading') return <p class="soft">Loading…</p>;
  if (loaded.state === 'failed')
    return (
      <p class="notice error" role="alert">
        {loaded.message}
      </p>
    );
  return <>{children(loaded.value)}</>;
}
