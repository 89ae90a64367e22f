import * as openid from 'openid-client';
import { type OperatorRules, vouchedBy } from './operators.ts';
import { type Person, ProviderDown, SignInRefused } from './signIns.ts';

export interface ProviderOptions extends OperatorRules {
  /** Part of the URL of its sign-in: 1, 2, … */
  readonly id: string;
  /** Label of the button. */
  readonly name: string;
  readonly clientId: string;
  /** Absent for public clients. */
  readonly clientSecret: string | undefined;
  /** Callback URL of this server. */
  readonly redirectUrl: string;
}

/** State of one sign-in, kept by the visitor's browser until the callback. */
export interface Attempt {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** Seconds that the clocks of provider and server may differ. */
const toleranceSeconds = 60;
const timeoutSeconds = 8;
/** Milliseconds that the provider's metadata is reused for new sign-ins. */
const keepMs = 60_000;

const isLoopback = ({ hostname }: URL) => ['localhost', '127.0.0.1', '[::1]'].includes(hostname);

/** Whether the provider could not be reached, as opposed to an error that it returned. */
function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as Error & { code?: string };
  const isOff = /^OAUTH_(TIMEOUT|RESPONSE_IS_NOT_(CONFORM|JSON))$/.test(code ?? '');
  return isOff || error instanceof TypeError || error.name === 'TimeoutError';
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value.trim().slice(0, 200) : undefined;

/**
 * One OpenID Connect provider: authorization code flow with PKCE (RFC 7636), state, nonce and a verified ID token.
 * Its metadata is read at the first sign-in: an outage of the provider affects sign-ins only.
 */
export class Provider {
  readonly options: ProviderOptions;
  #known: { readonly at: number; readonly configuration: Promise<openid.Configuration> } | undefined;

  constructor(options: ProviderOptions) {
    this.options = options;
  }

  /** The URL to redirect the visitor to, and the state for the callback. Throws ProviderDown. */
  async begin(): Promise<{ url: URL; attempt: Attempt }> {
    const configuration = await this.#described();
    const attempt: Attempt = {
      state: openid.randomState(),
      nonce: openid.randomNonce(),
      verifier: openid.randomPKCECodeVerifier(),
    };
    const url = openid.buildAuthorizationUrl(configuration, {
      redirect_uri: this.options.redirectUrl,
      scope: 'openid profile email',
      code_challenge: await openid.calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: 'S256',
      state: attempt.state,
      nonce: attempt.nonce,
    });
    return { url, attempt };
  }

  /** Completes the sign-in that returned with `query`. Throws ProviderDown and SignInRefused. */
  async finish(query: URLSearchParams, { state, nonce, verifier }: Attempt) {
    const configuration = await this.#discover();
    const current = new URL(this.options.redirectUrl);
    current.search = query.toString();
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier };
    try {
      const tokens = await openid.authorizationCodeGrant(configuration, current, {
        ...checks,
        idTokenExpected: true,
      });
      const identity = tokens.claims();
      if (!identity || tokens.id_token === undefined)
        throw new SignInRefused('The provider sent no ID token.');
      // Some providers put the profile into the ID token, others return it from the userinfo endpoint (OpenID
      // Connect Core, section 5.4).
      const asked = identity['email'] === undefined && configuration.serverMetadata().userinfo_endpoint;
      const claims = asked
        ? { ...(await openid.fetchUserInfo(configuration, tokens.access_token, identity.sub)), ...identity }
        : identity;
      const email = claims['email_verified'] === false ? undefined : textOf(claims['email']);
      return {
        person: {
          issuer: identity.iss,
          subject: identity.sub,
          name: textOf(claims['name']) ?? textOf(claims['preferred_username']) ?? email ?? identity.sub,
          email: email ?? null,
        } satisfies Person,
        vouched: vouchedBy(this.options, claims),
        idToken: tokens.id_token,
      };
    } catch (error) {
      if (error instanceof SignInRefused) throw error;
      if (isUnreachable(error)) throw this.#down(error);
      throw new SignInRefused('The sign-in could not be completed.', { cause: error });
    }
  }

  /** URL of the provider's own sign-out; undefined if it has none. */
  async signOutUrl(idToken: string, returnTo: string): Promise<URL | undefined> {
    const configuration = await this.#described().catch(() => undefined);
    if (configuration?.serverMetadata().end_session_endpoint === undefined) return undefined;
    return openid.buildEndSessionUrl(configuration, {
      id_token_hint: idToken,
      post_logout_redirect_uri: returnTo,
    });
  }

  /** The provider's metadata, at most a minute old, so that frequent sign-ins do not load the provider. */
  #described(): Promise<openid.Configuration> {
    if (!this.#known || performance.now() - this.#known.at > keepMs) {
      const configuration = this.#discover();
      this.#known = { at: performance.now(), configuration };
      // The next sign-in tries again.
      configuration.catch(() => {
        this.#known = undefined;
      });
    }
    return this.#known.configuration;
  }

  /** Reads the metadata and keys again. */
  async #discover(): Promise<openid.Configuration> {
    const { issuer, clientId, clientSecret } = this.options;
    const server = new URL(issuer);
    const authentication =
      clientSecret === undefined ? openid.None() : openid.ClientSecretBasic(clientSecret);
    const tolerance = { [openid.clockTolerance]: toleranceSeconds };
    // Plain http is allowed to the local machine only.
    const insecure = server.protocol === 'http:' && isLoopback(server) ? [openid.allowInsecureRequests] : [];
    const execute = [openid.enableNonRepudiationChecks, ...insecure];
    try {
      const options = { timeout: timeoutSeconds, execute };
      return await openid.discovery(server, clientId, tolerance, authentication, options);
    } catch (error) {
      throw this.#down(error);
    }
  }

  #down(cause: unknown): ProviderDown {
    return new ProviderDown(`${this.options.name} cannot be reached. Try again in a moment.`, { cause });
  }
}
