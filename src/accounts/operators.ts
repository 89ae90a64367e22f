/** What a provider said of somebody who signed in, as far as its rules about operators asked for it. */
export interface Vouched {
  /** The provider, as it was configured. */
  readonly issuer: string;
  /** In small letters; null where the provider did not say that it is verified. */
  readonly email: string | null;
  /** Of the claim that made operators then. */
  readonly claim: { readonly name: string; readonly values: readonly string[] } | null;
}

/** Whom one provider makes an operator. Says nothing about people of other providers. */
export interface OperatorRules {
  readonly issuer: string;
  /** People with this claim: `groups=cutout-admins`. */
  readonly operatorClaim: { readonly name: string; readonly value: string } | undefined;
  /** People with these verified e-mail addresses, in small letters. */
  readonly operators: readonly string[];
}

type Claims = Readonly<Record<string, unknown>>;

const isText = (value: unknown): value is string => typeof value === 'string';

/** What of the claims is kept, so that the rules can be asked again with every request. */
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

/** By the rules as they are now. What was not asked for at the sign-in makes nobody an operator. */
export function isOperator(rules: OperatorRules, { issuer, email, claim }: Vouched): boolean {
  if (issuer !== rules.issuer) return false;
  const { operatorClaim: wanted, operators } = rules;
  const byClaim = wanted && claim?.name === wanted.name && claim.values.includes(wanted.value);
  return byClaim === true || (email !== null && operators.includes(email));
}
