import { useEffect, useState } from 'preact/hooks';
import type { SessionInfo } from '../../../src/http/route/console/api.ts';
import { openLink, post, readSession, type SignedIn } from '../lib/console.ts';
import { takeToken } from '../lib/link.ts';
import { messageOf } from '../lib/message.ts';
import { Top } from '../ui/Top.tsx';
import { AccountPage } from './AccountPage.tsx';
import { AuditPage } from './AuditPage.tsx';
import { BuyPage } from './BuyPage.tsx';
import { ImagesPage } from './ImagesPage.tsx';
import { KeysPage } from './KeysPage.tsx';
import { OperatorAccountsPage } from './OperatorAccountsPage.tsx';
import { OverviewPage } from './OverviewPage.tsx';
import { SignIn } from './SignIn.tsx';
import { StatementPage } from './StatementPage.tsx';

interface Page {
  readonly id: string;
  readonly name: string;
  readonly shown: (session: SignedIn) => boolean;
  readonly view: (session: SignedIn) => preact.JSX.Element;
}

const always = () => true;

const pages: readonly Page[] = [
  { id: 'overview', name: 'Overview', shown: always, view: () => <OverviewPage /> },
  { id: 'keys', name: 'Keys', shown: always, view: () => <KeysPage /> },
  { id: 'statement', name: 'Statement', shown: always, view: () => <StatementPage /> },
  { id: 'buy', name: 'Buy credits', shown: ({ selling }) => selling, view: () => <BuyPage /> },
  { id: 'images', name: 'Images', shown: always, view: () => <ImagesPage /> },
  { id: 'account', name: 'Account', shown: always, view: (session) => <AccountPage session={session} /> },
  {
    id: 'accounts',
    name: 'All accounts',
    shown: ({ operator }) => operator,
    view: () => <OperatorAccountsPage />,
  },
  { id: 'audit', name: 'Audit log', shown: ({ operator }) => operator, view: () => <AuditPage /> },
];

/** `/console`: keys, credits and settings of the signed-in account. */
export function Console() {
  const [session, setSession] = useState<SessionInfo>();
  const [trouble, setTrouble] = useState('');
  const [here, setHere] = useState(location.hash.slice(1));

  useEffect(() => {
    const token = takeToken();
    const opened = token === undefined ? readSession() : openLink(token);
    opened
      .catch((error: unknown) => {
        setTrouble(messageOf(error));
        return readSession();
      })
      .then(setSession)
      .catch((error: unknown) => setTrouble(messageOf(error)));
    const follow = () => setHere(location.hash.slice(1));
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);

  const signOut = () => {
    post<{ redirect: string | null }>('sign-out').then(
      ({ redirect }) => location.assign(redirect ?? '/console'),
      () => location.reload(),
    );
  };

  if (!session?.signedIn)
    return (
      <>
        <Top here="/console" />
        <main class="console narrow">
          {session ? (
            <SignIn session={session} trouble={trouble} />
          ) : (
            <p class={trouble ? 'notice error' : 'soft'}>{trouble || 'Loading…'}</p>
          )}
        </main>
      </>
    );

  const shown = pages.filter((page) => page.shown(session));
  const page = shown.find(({ id }) => id === here) ?? shown[0];
  return (
    <>
      <Top here="/console" />
      <div class="console">
        <aside>
          <p class="who">
            <strong>{session.account.name}</strong>
            {session.account.email !== null && <span class="soft small">{session.account.email}</span>}
          </p>
          <nav aria-label="Console">
            {shown.map(({ id, name }) => (
              <a key={id} href={`#${id}`} aria-current={id === page?.id ? 'page' : undefined}>
                {name}
              </a>
            ))}
          </nav>
          <button type="button" class="plain" onClick={signOut}>
            Sign out
          </button>
        </aside>
        <main class="stack" key={page?.id}>
          <h1>{page?.name}</h1>
          {page?.view(session)}
        </main>
      </div>
    </>
  );
}
