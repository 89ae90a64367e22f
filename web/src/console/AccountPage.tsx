import { useState } from 'preact/hooks';
import type { DeleteRequest } from '../../../src/http/route/console/api.ts';
import { post, type SignedIn } from '../lib/console.ts';
import { messageOf } from '../lib/message.ts';
import { at } from '../ui/format.ts';

/** The account's owner, data export and deletion. */
export function AccountPage({ session: { account, expiresAt } }: { readonly session: SignedIn }) {
  const [name, setName] = useState('');
  const [trouble, setTrouble] = useState('');
  const remove = (event: Event) => {
    event.preventDefault();
    post('delete', { name } satisfies DeleteRequest).then(
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
          <dd>{at(expiresAt)} or longer while you are active</dd>
        </dl>
      </section>
      <section class="card stack">
        <h2>Your data</h2>
        <p>
          Everything that this service stores about you (account, names of keys, statement, images) as a ZIP
          file.
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
          All keys are revoked. Images you submitted, your name, e-mail address and sign-in are deleted.
          Remaining credits are forfeited. Statement entries are kept without your name, as accounting law
          requires. A keyed digest of your sign-in, which identifies nobody, is kept so that sign-up credits
          and free previews are given once.
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
