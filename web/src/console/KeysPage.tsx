import { useState } from 'preact/hooks';
import type { KeyInfo, NewKey } from '../../../src/http/route/console/api.ts';
import { createKey, post } from '../lib/console.ts';
import { messageOf } from '../lib/message.ts';
import { Confirm } from '../ui/Confirm.tsx';
import { CopyButton } from '../ui/CopyButton.tsx';
import { at } from '../ui/format.ts';
import { WideTable } from '../ui/WideTable.tsx';
import { Show } from './Show.tsx';
import { useLoad } from './useLoad.ts';

/** Keys of an account as a table, with a `revoke` button for those that are valid. */
export function KeyTable({
  keys,
  revoke,
}: {
  readonly keys: readonly KeyInfo[];
  readonly revoke: (id: string) => void;
}) {
  return (
    <WideTable label="Keys">
      <thead>
        <tr>
          <th>Name</th>
          <th>Key</th>
          <th>Created</th>
          <th>Last used</th>
          <th>
            <span class="visually-hidden">Revoke</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map(({ id, name, prefix, createdAt, lastUsedAt, revokedAt }) => (
          <tr key={id} class={revokedAt === null ? '' : 'soft'}>
            <td class="long">{name || '–'}</td>
            <td>
              <code>{prefix}…</code>
            </td>
            <td class="nowrap">{at(createdAt)}</td>
            <td class="nowrap">{at(lastUsedAt)}</td>
            <td>
              {revokedAt === null ? (
                <Confirm
                  label="Revoke"
                  question="Programs that use this key stop working immediately."
                  act={() => revoke(id)}
                />
              ) : (
                `revoked ${at(revokedAt)}`
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </WideTable>
  );
}

export function KeysPage() {
  const loaded = useLoad<readonly KeyInfo[]>('keys');
  const [name, setName] = useState('');
  const [made, setMade] = useState<NewKey>();
  const [trouble, setTrouble] = useState('');
  const fail = (error: unknown) => setTrouble(messageOf(error));
  const make = (event: Event) => {
    event.preventDefault();
    setTrouble('');
    createKey(name.trim()).then((key) => {
      setMade(key);
      setName('');
      loaded.reload();
    }, fail);
  };
  const revoke = (id: string) => {
    setTrouble('');
    post(`keys/${id}/revoke`).then(() => {
      if (made?.id === id) setMade(undefined);
      loaded.reload();
    }, fail);
  };
  return (
    <>
      <form class="card row" onSubmit={make}>
        <span class="field grow">
          <label for="key-name">Name of a new key</label>
          <input
            id="key-name"
            value={name}
            maxLength={100}
            placeholder="What will use it"
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        </span>
        <button class="primary low" type="submit" disabled={name.trim() === ''}>
          Create key
        </button>
      </form>
      {made && (
        <div class="notice stack" role="status">
          <p>
            New key <strong>{made.name}</strong>. Copy it now: it is not shown again.
          </p>
          <p class="row">
            <code class="new-key" data-testid="new-key">
              {made.key}
            </code>
            <CopyButton text={made.key} />
          </p>
        </div>
      )}
      {trouble !== '' && (
        <p class="notice error" role="alert">
          {trouble}
        </p>
      )}
      <Show loaded={loaded}>
        {(keys) =>
          keys.length === 0 ? <p class="soft">No keys yet.</p> : <KeyTable keys={keys} revoke={revoke} />
        }
      </Show>
    </>
  );
}
