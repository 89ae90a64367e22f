import { useEffect, useState } from 'preact/hooks';
import type { SessionInfo } from '../../../src/http/route/console/api.ts';
import { createKey, readSession } from '../lib/console.ts';

/** The key the calls are made with. Kept for this tab only; whoever is signed in can have one made. */
export function KeyField({
  value,
  change,
}: {
  readonly value: string;
  readonly change: (key: string) => void;
}) {
  const [session, setSession] = useState<SessionInfo>();
  const [trouble, setTrouble] = useState('');
  useEffect(() => {
    readSession().then(setSession, () => setSession(undefined));
  }, []);
  const make = () => {
    createKey('Playground').then(
      ({ key }) => change(key),
      (error: unknown) => setTrouble(error instanceof Error ? error.message : String(error)),
    );
  };
  return (
    <div class="field key">
      <label for="key">API key</label>
      <input
        id="key"
        type="password"
        autocomplete="off"
        spellcheck={false}
        value={value}
        placeholder="Sent as X-Api-Key"
        onInput={({ currentTarget }) => change(currentTarget.value.trim())}
      />
      {value === '' &&
        (session?.signedIn ? (
          <button type="button" onClick={make}>
            Make a key for this page
          </button>
        ) : (
          <span class="hint">
            {session ? (
              <>
                <a href="/console">Sign in</a> to make one, or paste one.
              </>
            ) : (
              'cutout serve prints the key of the local account when it starts.'
            )}
          </span>
        ))}
      {trouble !== '' && (
        <span class="hint" role="alert">
          {trouble}
        </span>
      )}
    </div>
  );
}
