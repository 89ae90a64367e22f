import { useState } from 'preact/hooks';
import type { AccountInfo } from '../../../src/http/route/console/api.ts';
import { post } from '../lib/console.ts';
import { at, credits } from '../ui/format.ts';
import { Show } from '../ui/Show.tsx';
import { useDebounced } from '../ui/useDebounced.ts';
import { messageOf, useLoad } from '../ui/useLoad.ts';
import { KeyTable } from './Keys.tsx';

function Grant({ id, done }: { readonly id: string; readonly done: () => void }) {
  const [amount, setAmount] = useState('');
  const [note, setNote] = useState('');
  const [trouble, setTrouble] = useState('');
  // Of this form until it was sent: sent twice, it counts once.
  const [reference, setReference] = useState(
    () => `console-${crypto.getRandomValues(new Uint32Array(3)).join('-')}`,
  );
  const grant = (event: Event) => {
    event.preventDefault();
    setTrouble('');
    post(`operator/accounts/${id}/grant`, { credits: Number(amount), note, reference }).then(
      () => {
        setAmount('');
        setNote('');
        setReference(`console-${crypto.getRandomValues(new Uint32Array(3)).join('-')}`);
        done();
      },
      (error: unknown) => setTrouble(messageOf(error)),
    );
  };
  return (
    <form class="row" onSubmit={grant}>
      <span class="field">
        <label for={`credits-${id}`}>Credits</label>
        <input
          id={`credits-${id}`}
          type="number"
          min="0.25"
          step="0.25"
          value={amount}
          onInput={({ currentTarget }) => setAmount(currentTarget.value)}
        />
      </span>
      <span class="field grow">
        <label for={`note-${id}`}>Note</label>
        <input
          id={`note-${id}`}
          maxLength={500}
          value={note}
          onInput={({ currentTarget }) => setNote(currentTarget.value)}
        />
      </span>
      <button class="low" type="submit" disabled={amount === '' || note.trim() === ''}>
        Grant
      </button>
      {trouble !== '' && (
        <p class="notice error" role="alert">
          {trouble}
        </p>
      )}
    </form>
  );
}

/** Operators: every account, its keys and credits. */
export function Accounts() {
  const [search, setSearch] = useState('');
  const [trouble, setTrouble] = useState('');
  const settled = useDebounced(search, 300);
  const loaded = useLoad<readonly AccountInfo[]>(`operator/accounts?search=${encodeURIComponent(settled)}`);
  const revoke = (key: string) => {
    post(`operator/keys/${key}/revoke`).then(loaded.reload, (error: unknown) => setTrouble(messageOf(error)));
  };
  return (
    <>
      <span class="field">
        <label for="search">Search by name, e-mail or id</label>
        <input
          id="search"
          type="search"
          value={search}
          onInput={({ currentTarget }) => setSearch(currentTarget.value)}
        />
      </span>
      {trouble !== '' && (
        <p class="notice error" role="alert">
          {trouble}
        </p>
      )}
      <Show loaded={loaded}>
        {(accounts) =>
          accounts.length === 0 ? (
            <p class="soft">No matching accounts.</p>
          ) : (
            <div class="stack">
              {accounts.map((account) => (
                <details key={account.id} class="card">
                  <summary>
                    {account.name} <span class="soft small">{account.email ?? account.id}</span>{' '}
                    <span class="small">{credits(account.credits)}</span>
                  </summary>
                  <div class="stack">
                    <p class="soft small">
                      <code>{account.id}</code>, created {at(account.createdAt)}
                      {account.deletedAt !== null && `, deleted ${at(account.deletedAt)}`}
                    </p>
                    {account.deletedAt === null && <Grant id={account.id} done={loaded.reload} />}
                    {account.keys.length > 0 && <KeyTable keys={account.keys} revoke={revoke} />}
                  </div>
                </details>
              ))}
            </div>
          )
        }
      </Show>
    </>
  );
}
