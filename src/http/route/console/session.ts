import { timingSafeEqual } from 'node:crypto';
import type { Session, Sessions } from '../../../accounts/sessions.ts';
import { fail } from '../../../errors.ts';
import { type Context, guarded, type Middleware } from '../../context.ts';
import { type Cookies, createCookie } from '../../cookies.ts';

/** The session of a request, kept beside the request's own state. */
const sessions = new WeakMap<object, Session>();

export const sessionCookie = (secure: boolean): Cookies => createCookie('cutout-session', secure);

/** What `signedIn` found. */
export function sessionOf(ctx: Context): Session {
  const session = sessions.get(ctx.req);
  if (!session) throw fail('internal_error', { cause: new Error('signedIn must come first') });
  return session;
}

/** The console is for its own pages alone: no other origin reads it, nothing keeps it. */
export const ownPages: Middleware = async (ctx, next) => {
  ctx.remove('Access-Control-Allow-Origin');
  ctx.remove('Access-Control-Expose-Headers');
  ctx.set({
    'Cache-Control': 'no-store',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
  });
  await next();
};

/** Refuses what another site made the browser send. `origin`: how the service is reached, where that is configured. */
export const sameOrigin =
  (origin: string | undefined): Middleware =>
  async (ctx, next) => {
    const site = ctx.get('Sec-Fetch-Site');
    const sender = ctx.get('Origin');
    const own = sender === '' || sender === origin || URL.parse(sender)?.host === ctx.host;
    if ((site !== '' && site !== 'same-origin') || !own) throw fail('forged_request');
    await next();
  };

function equal(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Lets pass who is signed in; changes only with the token of the session. */
export const signedIn =
  (store: Sessions, cookie: Cookies, isGone: (session: Session) => Promise<boolean>): Middleware =>
  async (ctx, next) => {
    const token = cookie.get(ctx);
    await guarded(ctx, async () => {
      const session = token === undefined ? undefined : await store.find(token);
      if (!session || (await isGone(session))) throw fail('not_signed_in');
      if (ctx.method === 'POST' && !equal(ctx.get('X-CSRF-Token'), session.csrf))
        throw fail('forged_request');
      sessions.set(ctx.req, session);
      ctx.state.telemetry.add({ account: session.accountId });
    });
    await next();
  };

/** `isOperator` is asked with every request: who is no operator any more changes nothing more. */
export const operatorsOnly =
  (isOperator: (session: Session) => boolean): Middleware =>
  async (ctx, next) => {
    await guarded(ctx, async () => {
      if (!isOperator(sessionOf(ctx))) throw fail('operators_only');
    });
    await next();
  };
