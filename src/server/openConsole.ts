import type { Provider } from '../accounts/oidc.ts';
import { Sessions } from '../accounts/sessions.ts';
import { SignIns } from '../accounts/signIns.ts';
import type { Stores } from '../billing/stores.ts';
import { localAccountId } from '../commands/ensureLocalAccount.ts';
import type { Config } from '../config/readConfig.ts';
import type { SignInConfig } from '../config/signIn.ts';
import { sessionCookie } from '../http/route/console/session.ts';
import type { Clock } from '../limits/clock.ts';
import type { SharedState } from './openSharedState.ts';
import { billingOf } from './options.ts';

/** The configured providers. Their library is loaded only if there is one. */
export async function providersOf(
  { oidcIssuer, oidcClientId, oidcClientSecret, oidcName, oidcOperatorClaim, oidcOperators }: SignInConfig,
  publicUrl: string | undefined,
): Promise<Provider[]> {
  if (!oidcIssuer || !oidcClientId || !publicUrl) return [];
  const { Provider } = await import('../accounts/oidc.ts');
  return oidcIssuer.map((issuer, index) => {
    /** A rule without a provider's number is allowed only if there is one provider. */
    const own = ({ provider = 1 }: { readonly provider: number | undefined }) => provider === index + 1;
    return new Provider({
      id: String(index + 1),
      name: oidcName?.[index] ?? new URL(issuer).host,
      issuer,
      clientId: oidcClientId[index] ?? '',
      clientSecret: oidcClientSecret?.[index],
      redirectUrl: `${publicUrl}/sign-in/${index + 1}/callback`,
      operatorClaim: oidcOperatorClaim?.find(own),
      operators: oidcOperators.filter(own).map(({ email }) => email),
    });
  });
}

export type OpenedConsole = Awaited<ReturnType<typeof openConsole>>;

/** Connects the parts of the console. */
export async function openConsole(
  { http, signIn, billing }: Pick<Config, 'http' | 'signIn' | 'billing'>,
  { database }: Stores,
  { sessions }: SharedState,
  /** `clock` replaces the clocks of this machine and of the database, `providers` the configured ones. */
  overrides: { readonly clock?: Clock; readonly providers?: readonly Provider[] | undefined },
) {
  const { publicUrl } = http;
  const now = overrides.clock?.now;
  const secure = publicUrl?.startsWith('https:') ?? false;
  const signIns = new SignIns(database, now);
  const providers = overrides.providers ?? (await providersOf(signIn, publicUrl));
  return {
    parts: {
      signIns,
      providers,
      secure,
      sessions: new Sessions(sessions, now ?? Date.now),
      cookie: sessionCookie(secure),
      billing: billingOf(billing, http.timeout),
      signUpCredits: signIn.signUpCredits,
      origin: publicUrl,
      returnUrl: `${publicUrl ?? ''}/console`,
    },
    /** Token of a one-time link for the local account; undefined if people sign in with a provider. */
    link: async () => (providers.length > 0 ? undefined : signIns.createLink(localAccountId)),
  };
}
