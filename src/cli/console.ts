import type { Provider } from '../accounts/oidc.ts';
import { Sessions } from '../accounts/sessions.ts';
import { SignIns } from '../accounts/signIns.ts';
import type { Purchases } from '../billing/purchases.ts';
import type { Stores } from '../billing/stores.ts';
import { localAccountId } from '../commands/ensureLocalAccount.ts';
import type { Config } from '../config.ts';
import type { ConsoleParts } from '../http/route/console/route.ts';
import { sessionCookie } from '../http/route/console/session.ts';
import type { SignInParts } from '../http/route/signin/route.ts';
import type { Improve } from '../improve/improve.ts';
import type { Shared } from './shared.ts';

/** The providers as configured. Their library is loaded only where there is one. */
export async function providersOf(config: Config): Promise<Provider[]> {
  const { oidcIssuer, oidcClientId, oidcClientSecret, oidcName, publicUrl } = config;
  if (!oidcIssuer || !oidcClientId || !publicUrl) return [];
  const { Provider } = await import('../accounts/oidc.ts');
  return oidcIssuer.map((issuer, index) => {
    /** Rules without a provider are there only where it is the only one. */
    const own = ({ provider = 1 }: { readonly provider: number | undefined }) => provider === index + 1;
    return new Provider({
      id: String(index + 1),
      name: oidcName?.[index] ?? new URL(issuer).host,
      issuer,
      clientId: oidcClientId[index] ?? '',
      clientSecret: oidcClientSecret?.[index],
      redirectUrl: `${publicUrl}/sign-in/${index + 1}/callback`,
      operatorClaim: config.oidcOperatorClaim?.find(own),
      operators: config.oidcOperators.filter(own).map(({ email }) => email),
    });
  });
}

export interface OpenConsole {
  readonly parts: ConsoleParts & Pick<SignInParts, 'secure' | 'signUpCredits'>;
  /** A one-time link's token for the local account; undefined where people sign in with a provider. */
  readonly link: () => Promise<string | undefined>;
}

/** What the console needs, from the parts of the server. */
export async function openConsole(
  config: Config,
  parts: {
    readonly stores: Stores;
    readonly improve: Improve;
    readonly shared: Shared;
    readonly purchases: Purchases | undefined;
  },
): Promise<OpenConsole> {
  const { stores, improve, purchases } = parts;
  const { rate, attempts, sessions } = parts.shared;
  const { accounts, ledger, audit, database } = stores;
  const secure = config.publicUrl?.startsWith('https:') ?? false;
  const signIns = new SignIns(database);
  const providers = await providersOf(config);
  const rules = { idleMs: config.sessionIdle * 1000, absoluteMs: config.sessionMax * 1000 };
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
      sessions: new Sessions(sessions, rules, Date.now),
      cookie: sessionCookie(secure),
      freePreviews: { perMonth: config.freePreviewsMonth, perDay: config.freePreviewsDay },
      signUpCredits: config.signUpCredits,
      origin: config.publicUrl,
      returnUrl: `${config.publicUrl ?? ''}/console`,
    },
    link: async () => (providers.length > 0 ? undefined : signIns.createLink(localAccountId)),
  };
}
