import { formatCredits } from '../billing/price.ts';
import { UserError } from '../errors.ts';
import { list, price, token, webAddress } from './parsers.ts';
import { optional, requireTogether, type Settings, setting, type Values } from './types.ts';

/** A rule of one provider, by its position in CUTOUT_OIDC_ISSUER, from 1; undefined: the only provider. */
interface OfProvider {
  readonly provider: number | undefined;
}

const placed = ({ provider }: OfProvider, text: string) =>
  provider === undefined ? text : `${provider}:${text}`;

/** Values may contain commas: a new claim begins where a comma is followed by a provider's number. */
const claims = (text: string): readonly ({ readonly name: string; readonly value: string } & OfProvider)[] =>
  text.split(/,(?=\s*\d+:)/).map((each) => {
    const [, provider, name, value] = /^(?:(\d+):)?([^=\s]+)=(.+)$/.exec(each.trim()) ?? [];
    if (!name || !value)
      throw new Error(
        'a claim and its value, for example groups=cutout-admins; with several providers 1:groups=cutout-admins, 2:…',
      );
    return { provider: provider === undefined ? undefined : Number(provider), name, value };
  });

const operatorEmail = (text: string): { readonly email: string } & OfProvider => {
  const [, provider, email] = /^(?:(\d+):)?([^:\s]+)$/.exec(text.toLowerCase()) ?? [];
  if (!email) throw new Error();
  return { provider: provider === undefined ? undefined : Number(provider), email };
};

export const signInSettings = {
  oidcIssuer: optional(
    'CUTOUT_OIDC_ISSUER',
    list(webAddress, 'a comma-separated list of http or https addresses'),
  ).help(
    'OpenID Connect providers for sign-in, comma-separated. Not set: the console opens through a link that `cutout serve` and `cutout console` print.',
  ),
  oidcClientId: optional('CUTOUT_OIDC_CLIENT_ID', list(token, 'a comma-separated list of client ids')).help(
    'Client id of this service at each provider, in the same order.',
  ),
  oidcClientSecret: optional('CUTOUT_OIDC_CLIENT_SECRET', list(token, 'a comma-separated list of secrets'), {
    secret: true,
  }).help('Client secret at each provider; not set for public clients.'),
  oidcName: optional(
    'CUTOUT_OIDC_NAME',
    list((text) => text, 'a comma-separated list of names'),
  ).help('Name of each provider on its button (default: its host).'),
  oidcOperatorClaim: optional('CUTOUT_OIDC_OPERATOR_CLAIM', claims, {
    show: (all: ReturnType<typeof claims>) =>
      all.map((each) => placed(each, `${each.name}=${each.value}`)).join(', '),
  }).help(
    'Claim that makes somebody an operator, for example groups=cutout-admins; with several providers 1:groups=cutout-admins, 2:roles=operator.',
  ),
  oidcOperators: setting(
    'CUTOUT_OIDC_OPERATORS',
    '',
    list(
      operatorEmail,
      'a comma-separated list of e-mail addresses, with several providers like 1:ann@example.com',
    ),
    {
      show: (all: readonly ReturnType<typeof operatorEmail>[]) =>
        all.map((each) => placed(each, each.email)).join(', '),
    },
  ).help(
    'Verified e-mail addresses of operators; with several providers 1:ann@example.com, where 1 is the first of CUTOUT_OIDC_ISSUER.',
  ),
  signUpCredits: setting('CUTOUT_SIGN_UP_CREDITS', '0', price, { show: formatCredits }).help(
    'Credits that an account gets at its first sign-in.',
  ),
} as const satisfies Settings;

export type SignInConfig = Values<typeof signInSettings>;

/** Each list needs one entry per provider. Throws UserError. */
export function checkProviders(values: SignInConfig): void {
  requireTogether(signInSettings, values, ['oidcIssuer', 'oidcClientId']);
  for (const name of ['oidcClientId', 'oidcClientSecret', 'oidcName'] as const)
    if (values[name] && values[name].length !== values.oidcIssuer?.length)
      throw new UserError(
        `${signInSettings[name].variable} must have as many entries as CUTOUT_OIDC_ISSUER.`,
      );
}

/** The callback needs a public address. Throws UserError. */
export function checkCallback({ oidcIssuer }: SignInConfig, publicUrl: string | undefined): void {
  if (oidcIssuer && !publicUrl)
    throw new UserError('CUTOUT_OIDC_ISSUER requires CUTOUT_PUBLIC_URL, which is not set.');
}

/** Statements of a provider count for that provider only: with several, each rule must name its own. Throws UserError. */
export function checkOperators({ oidcIssuer, oidcOperators, oidcOperatorClaim }: SignInConfig): void {
  const count = oidcIssuer?.length ?? 0;
  if (count === 0) return;
  const rules = [
    ...oidcOperators.map(({ provider, email }) => ['CUTOUT_OIDC_OPERATORS', provider, email] as const),
    ...(oidcOperatorClaim ?? []).map(
      ({ provider, name, value }) => ['CUTOUT_OIDC_OPERATOR_CLAIM', provider, `${name}=${value}`] as const,
    ),
  ];
  for (const [variable, provider, text] of rules) {
    if (provider === undefined && count > 1)
      throw new UserError(
        `${variable} must name the provider of ${text}, because there are ${count} providers in CUTOUT_OIDC_ISSUER: for example 1:${text} for the first.`,
      );
    if (provider !== undefined && (provider < 1 || provider > count))
      throw new UserError(`${variable} names provider ${provider}, CUTOUT_OIDC_ISSUER has ${count}.`);
  }
  const claimed = (oidcOperatorClaim ?? []).map(({ provider = 1 }) => provider);
  if (new Set(claimed).size < claimed.length)
    throw new UserError('CUTOUT_OIDC_OPERATOR_CLAIM may have one claim for each provider.');
}
