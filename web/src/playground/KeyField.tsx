import { useState } from 'preact/hooks';
import type { ApiKey } from './useApiKey.ts';

/** The key for requests. It stays in this tab; signed-in visitors do not need to enter one. */
export function KeyField({ apiKey: { value, change, session } }: { readonly apiKey: ApiKey }) {
  // Decided once, so that it does not close while a key is typed.
  const [missing] = useState(value === '');
  return (
    <details open={missing && session?.signedIn === false}>
      <summary>Key</summary>
      <div class="field">
        <label for="key">API key</label>
        <input
          id="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={value}
          placeholder="Sent as X-Api-Key"
          aria-describedby="key-hint"
          onInput={({ currentTarget }) => change(currentTarget.value.trim())}
        />
        <span class="hint" id="key-hint">
          {session?.signedIn ? (
            'You are signed in: a key is created for this tab with your first image.'
          ) : (
            <>
              {session?.signedIn === false && session.link ? (
                <>
                  Open the address that Cutout printed when it started (<code>npx cutout console</code> prints
                  another one),
                </>
              ) : (
                <>
                  <a href="/console">Sign in</a>,
                </>
              )}{' '}
              or enter a key. It is forgotten when this tab closes.
            </>
          )}
        </span>
      </div>
    </details>
  );
}
