/** What a provider stated about a person who signed in, as far as its operator rules ask for it. */
export interface Vouched {
  /** The provider's configured issuer. */
  readonly issuer: string;
  /** Lower case; null unless the provider stated that it is verified. */
  readonly email: string | null;
  /** The claim that identified operators at the time. */
  readonly claim: { readonly name: string; readonly values: readonly string[] } | null;
}

/** Which people of one provider are operators. */
export interface OperatorRules {
  readonly issuer: string;
  /** People with this claim: `groups=cutout-admins`. */
  readonly operatorClaim: { readonly name: string; readonly value: string } | undefined;
  /** People with these verified e-mail addresses, lower case. */
  readonly operators: readonly string[];
}

type Claims = Readonly<Record<string, unknown>>;

const isText = (value: unknown): value is string => typeof value === 'string';

/** The part of the claims that is kept, so that the rules can be evaluated with every request. */
export function vouchedBy({ issuer, operatorClaim }: OperatorRules, claims: Claims): Vouched {
  const { email, email_verified: verified } = claims as { email?: unknown; email_verified?: unknown };
  const name = operatorClaim?.name;
  const value = name === undefined ? undefined : claims[name];
  return {
    issuer,
    email: verified === true && isText(email) && email.trim() !== '' ? email.trim().toLowerCase() : null,
    claim:
      name === undefined ? null : { name, values: (Array.isArray(value) ? value : [value]).filter(isText) },
  };
}

/** Whether a person is an operator by the current rules. Claims that were not recorded at the sign-in make nobody an operator. */
export function isOperator(rules: OperatorRules, { issuer, email, claim }: Vouched): boolean {
  if (issuer !== rules.issuer) return false;
  const { operatorClaim: wanted, operators } = rules;
  const byClaim = wanted && claim?.name === wanted.name && claim.values.includes(wanted.value);
  return byClaim === true || (email !== null && operators.includes(email));
}
