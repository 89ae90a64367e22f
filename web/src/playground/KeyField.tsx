import type { ApiKey } from './useApiKey.ts';

/** The key for requests. It stays in this tab; signed-in visitors do not need to enter one. */
export function KeyField({ apiKey: { value, change, session } }: { readonly apiKey: ApiKey }) {
  return (
    <details open={session?.signedIn !== true}>
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
              <a href="/console">Sign in</a>, or enter the key that the service gave you. It is forgotten when
              this tab closes.
            </>
          )}
        </span>
      </div>
    </details>
  );
}
