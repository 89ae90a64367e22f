/** The provider cannot be reached or is not an OpenID provider. The message is public, the cause for the log. */
export class ProviderDown extends Error {
  override readonly name = 'ProviderDown';
}

/** The callback is invalid: refused by the provider, replayed, forged or too old. */
export class SignInRefused extends Error {
  override readonly name = 'SignInRefused';
}
