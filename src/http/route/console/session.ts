import { z } from 'zod';
import { isoTime } from '../../../billing/present.ts';
import { signInByLink } from '../../../commands/signIn.ts';
import { fail } from '../../../errors.ts';
import { attemptSourceOf, recordAttempt } from '../../../limits/attempts.ts';
import { tooManyAttempts } from '../../../limits/limitErrors.ts';
import type { Context, Middleware } from '../../context.ts';
import { createCookie } from '../../cookies.ts';
import { inBody, parse, text } from '../../requestParameters.ts';
import type { Route } from '../../router.ts';
import {
  actorOf,
  type ConsoleParts,
  type Endpoints,
  findSession,
  isOperatorSession,
  sessionOf,
} from './access.ts';
import type { SessionInfo, SignedOut } from './api.ts';

const linkRequest = z.object({ token: text(100) });

export const sessionCookie = (secure: boolean) => createCookie('cutout-session', secure);

/** The current session, sign-in by a one-time link, and sign-out. */
export function sessionRoutes(parts: ConsoleParts, { anyone, owner }: Endpoints): Route[] {
  const { stores, sessions, signIns, providers, cookie, attempts } = parts;

  const describe = async (token: string | undefined): Promise<SessionInfo> => {
    const session = await findSession(parts, token);
    if (!session)
      return {
        signedIn: false,
        providers: providers.map(({ options: { id, name } }) => ({ id, name })),
        link: providers.length === 0,
      };
    const { id, name, email } = await stores.accounts.get(session.accountId);
    return {
      signedIn: true,
      account: { id, name, email },
      operator: isOperatorSession(parts, session),
      csrf: session.csrf,
      expiresAt: isoTime(sessions.expiresAt(session)),
      selling: parts.purchases !== undefined,
    };
  };

  const throwIfThrottled = (wait: number) => {
    if (wait > 0) throw tooManyAttempts('failed sign-ins', wait);
  };
  /** Slows down failed sign-ins before the body is read, because the caller is unknown. */
  const throttle: Middleware = async (ctx, next) => {
    throwIfThrottled(await attempts.wait(attemptSourceOf(ctx.ip)));
    await next();
  };
  const openLink = async (ctx: Context): Promise<SessionInfo> => {
    const { token: link } = parse(linkRequest, inBody(ctx));
    // Checked before it is consumed, so that a caller who has to wait can use the same link later.
    throwIfThrottled(await recordAttempt(attempts, attemptSourceOf(ctx.ip), await signIns.isGood(link)));
    const found = await signInByLink({ stores, signIns, address: ctx.ip }, link);
    if (!found)
      throw fail('not_signed_in', {
        detail: 'This link was already used or has expired. `cutout console` prints a new one.',
      });
    const { token } = await sessions.open({ accountId: found.id, link: true }, cookie.get(ctx));
    cookie.set(ctx, token);
    return describe(token);
  };

  const signOut = async (ctx: Context): Promise<SignedOut> => {
    const { provider: signedInBy } = sessionOf(ctx);
    await endSession(parts, ctx);
    const { id: actor, address } = actorOf(ctx);
    await stores.audit.write({ action: 'sign-out', actor, address });
    const provider = providers.find(({ options }) => options.id === signedInBy?.id);
    const url = signedInBy && (await provider?.signOutUrl(signedInBy.idToken, parts.returnUrl));
    return { redirect: url?.href ?? null };
  };

  return [
    anyone.get('session', (ctx) => describe(cookie.get(ctx))),
    anyone.post('link', openLink, throttle),
    owner.post('sign-out', signOut),
  ];
}

/** Ends the session of a request, on the server and in the browser. */
export async function endSession(
  { sessions, cookie }: Pick<ConsoleParts, 'sessions' | 'cookie'>,
  ctx: Context,
): Promise<void> {
  const token = cookie.get(ctx);
  if (token !== undefined) await sessions.end(token);
  cookie.clear(ctx);
}
