import { useState } from 'preact/hooks';
import { post } from '../lib/console.ts';
import { at } from '../ui/format.ts';
import { messageOf } from '../ui/useLoad.ts';
import type { SignedIn } from './Console.tsx';

/** Who the account belongs to, its data to take along, and its end. */
export function AccountPage({ session: { account, expiresAt } }: { readonly session: SignedIn }) {
  const [name, setName] = useState('');
  const [trouble, setTrouble] = useState('');
  const remove = (event: Event) => {
    event.preventDefault();
    post('delete', { name }).then(
      () => location.assign('/'),
      (error: unknown) => setTrouble(messageOf(error)),
    );
  };
  return (
    <>
      <section class="card stack">
        <dl class="facts">
          <dt>Name</dt>
          <dd>{account.name}</dd>
          <dt>E-mail</dt>
          <dd>{account.email ?? '–'}</dd>
          <dt>Id</dt>
          <dd>
            <code>{account.id}</code>
          </dd>
          <dt>Signed in until</dt>
          <dd>{at(expiresAt)}, later while you are active</dd>
        </dl>
      </section>
      <section class="card stack">
        <h2>Your data</h2>
        <p>
          Everything this service keeps about you: account, keys' names, statement and images, as a ZIP file.
        </p>
        <p>
          <a class="button" href="/console/api/export" download>
            Download my data
          </a>
        </p>
      </section>
      <form class="card stack" onSubmit={remove}>
        <h2>Delete the account</h2>
        <p>
          Every key stops working, images you handed in are deleted, name, e-mail and sign-in are forgotten,
          credits that are left are lost. The entries of the statement stay in the books, without a name: the
          law wants them kept. So that credits and free previews are given once, a code that only this server
          can make of your sign-in stays too; nobody can read from it who you were.
        </p>
        <span class="field">
          <label for="confirm">Type the account's name, {account.name}</label>
          <input
            id="confirm"
            autocomplete="off"
            value={name}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        </span>
        {trouble !== '' && (
          <p class="notice error" role="alert">
            {trouble}
          </p>
        )}
        <p>
          <button class="danger" type="submit" disabled={name !== account.name}>
            Delete my account
          </button>
        </p>
      </form>
    </>
  );
}
