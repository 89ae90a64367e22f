import { z } from 'zod';
import type { Attempt, Provider } from '../../../accounts/oidc.ts';
import { ProviderDown, SignInRefused } from '../../../accounts/signIns.ts';
import type { QuarterCredits } from '../../../billing/price.ts';
import { signIn } from '../../../commands/signIn.ts';
import { excerpt, fail } from '../../../errors.ts';
import { attemptSourceOf } from '../../../limits/attempts.ts';
import type { Logger } from '../../../ops/log.ts';
import type { Context, Middleware } from '../../context.ts';
import { createCookie } from '../../cookies.ts';
import { inPath } from '../../requestParameters.ts';
import type { Route } from '../../router.ts';
import type { ConsoleParts } from '../console/access.ts';

export interface SignInParts extends ConsoleParts {
  /** The service is reached over https. */
  readonly secure: boolean;
  readonly logger: Logger;
  /** Credits of a new account. */
  readonly signUpCredits: QuarterCredits;
}

/** Seconds that a visitor may spend at the provider. */
const attemptSeconds = 600;

const write = (provider: Provider, attempt: Attempt) =>
  Buffer.from(JSON.stringify({ ...attempt, provider: provider.options.id, at: Date.now() })).toString(
    'base64url',
  );

/** What the cookie has. */
const pending = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  provider: z.string(),
  at: z.number(),
});

/** Tolerates a minute, so that a clock that was set back does not prolong attempts. */
const isRecent = (at: number): boolean => {
  const age = Date.now() - at;
  return age <= attemptSeconds * 1000 && age > -60_000;
};

/** The attempt that this browser began at this provider; undefined if there is none or it is too old. */
function read(provider: Provider, text: string | undefined): Attempt | undefined {
  if (text === undefined) return undefined;
  try {
    const {
      provider: id,
      at,
      ...attempt
    } = pending.parse(JSON.parse(Buffer.from(text, 'base64url').toString()));
    return id === provider.options.id && isRecent(at) ? attempt : undefined;
  } catch {
    return undefined;
  }
}

/** Redirects without a trace of where the visitor came from. */
function redirect(ctx: Context, to: string): void {
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Referrer-Policy', 'no-referrer');
  ctx.redirect(to);
}

/** Shows the visitor what went wrong. Throws an error that is neither the provider's fault nor a refusal. */
async function showProblem(
  ctx: Context,
  error: unknown,
  { logger, attempts }: Pick<SignInParts, 'logger' | 'attempts'>,
): Promise<void> {
  const { requestId, telemetry } = ctx.state;
  if (error instanceof ProviderDown) {
    logger.warn({ request: requestId, err: error }, 'sign-in: provider down');
    telemetry.add({ problem: 'provider-down' });
    return redirect(ctx, '/console?problem=provider-down');
  }
  if (!(error instanceof SignInRefused)) throw error;
  logger.info({ request: requestId, err: error }, 'sign-in refused');
  telemetry.add({ problem: 'refused' });
  const wait = await attempts.failed(attemptSourceOf(ctx.ip));
  redirect(ctx, `/console?problem=${wait > 0 ? 'too-many' : 'refused'}`);
}

/** Opens a session for the person that the provider vouches for. Rejects with SignInRefused or ProviderDown. */
async function openSession(
  ctx: Context,
  provider: Provider,
  attempt: Attempt | undefined,
  { stores, sessions, signIns, cookie, signUpCredits }: SignInParts,
): Promise<void> {
  if (!attempt) throw new SignInRefused('This browser did not start a sign-in, or the sign-in has expired.');
  const { id, name } = provider.options;
  const answer = new URLSearchParams(ctx.querystring);
  const { person, vouched, idToken } = await provider.finish(answer, attempt);
  const account = await signIn(
    { stores, signIns, address: ctx.ip },
    { person, provider: name, signUpCredits },
  );
  const { token } = await sessions.open(
    { accountId: account.id, provider: { id, idToken, vouched } },
    cookie.get(ctx),
  );
  ctx.state.telemetry.add({ account: account.id });
  cookie.set(ctx, token);
}

/**
 * `GET /sign-in/<provider>` redirects to the provider, `…/callback` returns from it. Errors are shown by the
 * console, `/console?problem=<word>`; no address contains personal data.
 */
export function signInRoutes(parts: SignInParts): Route[] {
  const { providers, attempts, secure } = parts;
  const attemptCookie = createCookie('cutout-sign-in', secure);

  const providerOf = (ctx: Context): Provider => {
    const id = inPath(ctx, 'provider');
    const provider = providers.find(({ options }) => options.id === id);
    if (!provider) throw fail('not_found', { detail: `No such path: ${excerpt(ctx.path)}` });
    return provider;
  };
  const throttle: Middleware = async (ctx, next) => {
    if ((await attempts.wait(attemptSourceOf(ctx.ip))) > 0) return redirect(ctx, '/console?problem=too-many');
    await next();
  };
  const begin: Middleware = async (ctx) => {
    const provider = providerOf(ctx);
    try {
      const { url, attempt } = await provider.begin();
      attemptCookie.set(ctx, write(provider, attempt), attemptSeconds);
      redirect(ctx, url.href);
    } catch (error) {
      await showProblem(ctx, error, parts);
    }
  };
  const finish: Middleware = async (ctx) => {
    const provider = providerOf(ctx);
    const attempt = read(provider, attemptCookie.get(ctx));
    // Cleared whatever the outcome: the provider's answer is accepted once.
    attemptCookie.clear(ctx);
    try {
      await openSession(ctx, provider, attempt, parts);
      redirect(ctx, '/console');
    } catch (error) {
      await showProblem(ctx, error, parts);
    }
  };

  return [
    { method: 'GET', paths: ['/sign-in/:provider'], handlers: [throttle, begin] },
    { method: 'GET', paths: ['/sign-in/:provider/callback'], handlers: [throttle, finish] },
  ];
}
