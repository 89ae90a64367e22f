import { useState } from 'preact/hooks';
import type {
  AccountInfo,
  AccountSummary,
  GrantRequest,
  ServiceOptions,
} from '../../../src/http/route/console/api.ts';
import { post } from '../lib/console.ts';
import { messageOf } from '../lib/message.ts';
import { at, credits } from '../ui/format.ts';
import { useDebounced } from '../ui/useDebounced.ts';
import { KeyTable } from './KeysPage.tsx';
import { PagedList } from './PagedList.tsx';
import { Show } from './Show.tsx';
import { useLoad } from './useLoad.ts';
import { usePages } from './usePages.ts';

function Grant({ id, done }: { readonly id: string; readonly done: () => void }) {
  const options = useLoad<ServiceOptions>('options');
  const step = options.state === 'here' ? options.value.creditStep : 'any';
  const [amount, setAmount] = useState('');
  const [note, setNote] = useState('');
  const [trouble, setTrouble] = useState('');
  // Identifies one submission of the form, so that a repeated one counts once.
  const [reference, setReference] = useState(
    () => `console-${crypto.getRandomValues(new Uint32Array(3)).join('-')}`,
  );
  const grant = (event: Event) => {
    event.preventDefault();
    setTrouble('');
    post(`operator/accounts/${id}/grant`, {
      credits: Number(amount),
      note,
      reference,
    } satisfies GrantRequest).then(
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
          min={step === 'any' ? 0 : step}
          step={step}
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

/** Details and actions for one account. `changed` is called after a grant. */
function Details({
  account: { id, createdAt, deletedAt },
  changed,
}: {
  readonly account: AccountSummary;
  readonly changed: () => void;
}) {
  const loaded = useLoad<AccountInfo>(`operator/accounts/${id}`);
  const [trouble, setTrouble] = useState('');
  const revoke = (key: string) => {
    setTrouble('');
    post(`operator/keys/${key}/revoke`).then(loaded.reload, (error: unknown) => setTrouble(messageOf(error)));
  };
  return (
    <div class="stack">
      <p class="soft small">
        <code>{id}</code>, created {at(createdAt)}
        {deletedAt !== null && `, deleted ${at(deletedAt)}`}
      </p>
      {deletedAt === null && <Grant id={id} done={changed} />}
      {trouble !== '' && (
        <p class="notice error" role="alert">
          {trouble}
        </p>
      )}
      <Show loaded={loaded}>
        {({ keys }) =>
          keys.length === 0 ? <p class="soft">No keys.</p> : <KeyTable keys={keys} revoke={revoke} />
        }
      </Show>
    </div>
  );
}

/** One account, collapsed until it is opened; its keys are loaded then. */
function Account({ account, changed }: { readonly account: AccountSummary; readonly changed: () => void }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="card account" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <span class="line">
          <span class="name">{account.name}</span>
          <span class="soft small">{account.email ?? account.id}</span>
          <span class="small">{credits(account.credits)}</span>
        </span>
      </summary>
      {open && <Details account={account} changed={changed} />}
    </details>
  );
}

/** Operators: every account, its keys and credits. */
export function OperatorAccountsPage() {
  const [search, setSearch] = useState('');
  const wanted = useDebounced(search.trim(), 300);
  const pages = usePages<AccountSummary>(`operator/accounts?${new URLSearchParams({ search: wanted })}`);
  return (
    <>
      <span class="field">
        <label for="search">Search by name, e-mail or id</label>
        <input
          id="search"
          type="search"
          maxLength={200}
          value={search}
          onInput={({ currentTarget }) => setSearch(currentTarget.value)}
        />
      </span>
      <PagedList pages={pages} empty="No matching accounts.">
        {(accounts) => (
          <div class="stack">
            {accounts.map((account) => (
              <Account key={account.id} account={account} changed={pages.reload} />
            ))}
          </div>
        )}
      </PagedList>
    </>
  );
}
