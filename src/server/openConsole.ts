import type { Provider } from '../accounts/oidc.ts';
import { Sessions, sessionRules } from '../accounts/sessions.ts';
import { SignIns } from '../accounts/signIns.ts';
import type { Stores } from '../billing/stores.ts';
import type { Purchases } from '../billing/stripeCheckout.ts';
import { localAccountId } from '../commands/ensureLocalAccount.ts';
import type { Config } from '../config/readConfig.ts';
import type { SignInConfig } from '../config/signIn.ts';
import type { ConsoleParts } from '../http/route/console/access.ts';
import { sessionCookie } from '../http/route/console/session.ts';
import type { SignInParts } from '../http/route/signin/route.ts';
import type { Improve } from '../improve/improve.ts';
import type { SharedState } from './openSharedState.ts';

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

export interface OpenedConsole {
  readonly parts: ConsoleParts & Pick<SignInParts, 'secure' | 'signUpCredits'>;
  /** Token of a one-time link for the local account; undefined if people sign in with a provider. */
  readonly link: () => Promise<string | undefined>;
}

/** Connects the parts of the console. */
export async function openConsole(
  { http, signIn, billing }: Pick<Config, 'http' | 'signIn' | 'billing'>,
  parts: {
    readonly stores: Stores;
    readonly improve: Improve;
    readonly shared: SharedState;
    readonly purchases: Purchases | undefined;
    /** Replace the configured ones. */
    readonly providers?: readonly Provider[] | undefined;
    /** Replaces the clocks of this machine and of the database. */
    readonly now?: (() => number) | undefined;
  },
): Promise<OpenedConsole> {
  const { stores, improve, purchases, now } = parts;
  const { publicUrl } = http;
  const { rate, attempts, sessions } = parts.shared;
  const { accounts, ledger, audit, database } = stores;
  const secure = publicUrl?.startsWith('https:') ?? false;
  const signIns = new SignIns(database, now);
  const providers = parts.providers ?? (await providersOf(signIn, publicUrl));
  return {
    parts: {
      stores,
      accounts,
      ledger,
      improve,
      rate,
      attempts,
      purchases,
      signIns,
      providers,
      secure,
      audit,
      sessions: new Sessions(sessions, sessionRules, now ?? Date.now),
      cookie: sessionCookie(secure),
      freePreviews: { perMonth: billing.freePreviewsMonth, perDay: billing.freePreviewsDay },
      prices: { preview: billing.pricePreview, full: billing.priceFull },
      signUpCredits: signIn.signUpCredits,
      origin: publicUrl,
      returnUrl: `${publicUrl ?? ''}/console`,
    },
    link: async () => (providers.length > 0 ? undefined : signIns.createLink(localAccountId)),
  };
}
