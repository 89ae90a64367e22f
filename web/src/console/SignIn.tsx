import type { SessionInfo } from '../../../src/http/route/console/api.ts';

const problems: Readonly<Record<string, string>> = {
  'provider-down': 'The provider cannot be reached. Try again in a moment. The API is unaffected.',
  refused: 'The sign-in could not be completed. Try again.',
  'too-many': 'There were too many failed sign-ins from this address. Try again in a minute.',
};

/** Ways to sign in: the providers, or the link that the server printed. */
export function SignIn({
  session,
  trouble,
}: {
  readonly session: Extract<SessionInfo, { readonly signedIn: false }>;
  readonly trouble: string;
}) {
  const problem = trouble || problems[new URLSearchParams(location.search).get('problem') ?? ''];
  return (
    <div class="card stack">
      <h1>Sign in</h1>
      {problem && (
        <p class="notice error" role="alert">
          {problem}
        </p>
      )}
      {session.providers.map(({ id, name }) => (
        <a key={id} class="button primary" href={`/sign-in/${id}`}>
          Sign in with {name}
        </a>
      ))}
      {session.link && (
        <>
          <p>
            This installation has no sign-in provider. Its console opens with a one-time link: the one that{' '}
            <code>cutout serve</code> printed at its start, or a new one from
          </p>
          <pre>npx cutout console</pre>
          <p class="soft small">Run it where the server runs, with the same settings.</p>
        </>
      )}
    </div>
  );
}
