/** The provider cannot be reached or is not one. The message is for people, the cause for the log. */
export class ProviderDown extends Error {
  override readonly name = 'ProviderDown';
}

/** The sign-in came back wrong: refused there, replayed, forged, too old. */
export class SignInRefused extends Error {
  override readonly name = 'SignInRefused';
}
