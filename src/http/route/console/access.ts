import { timingSafeEqual } from 'node:crypto';
import type { Accounts } from '../../../accounts/accounts.ts';
import type { Provider } from '../../../accounts/oidc.ts';
import type { Session, Sessions } from '../../../accounts/sessions.ts';
import type { Actor } from '../../../commands/command.ts';
import { fail } from '../../../errors.ts';
import { type Context, guarded, type Middleware } from '../../context.ts';
import type { Cookies } from '../../cookies.ts';
import type { Route } from '../../router.ts';

export interface AccessParts {
  readonly accounts: Accounts;
  readonly sessions: Sessions;
  /** None: the console opens through one-time links. */
  readonly providers: readonly Provider[];
  readonly cookie: Cookies;
  /** How people reach the service, where that is configured. */
  readonly origin?: string | undefined;
}

const prefix = '/console/api';

/** The session of a request, kept beside the request's own state. */
const sessionOfRequest = new WeakMap<object, Session>();

/** The session that let the request in. */
export function sessionOf(ctx: Context): Session {
  const session = sessionOfRequest.get(ctx.req);
  if (!session) throw fail('internal_error', { cause: new Error('signedIn must come first') });
  return session;
}

/** The account that is signed in. */
export const accountIdOf = (ctx: Context): string => sessionOf(ctx).accountId;

/** Who is signed in, as commands and audit events name them. */
export const actorOf = (ctx: Context): Actor => ({ id: accountIdOf(ctx), address: ctx.ip });

/** Its owner may have deleted the account from another browser, whose session alone was ended. */
const isGone = async (accounts: Accounts, { accountId }: Session) =>
  (await accounts.get(accountId)).deletedAt !== null;

/** The session behind a cookie; undefined when there is none, or its account was deleted. */
export async function findSession(
  { accounts, sessions }: AccessParts,
  token: string | undefined,
): Promise<Session | undefined> {
  const session = token === undefined ? undefined : await sessions.find(token);
  return session && !(await isGone(accounts, session)) ? session : undefined;
}

/** A session that an earlier version stored has nothing that vouches for its owner. */
export function isOperator({ providers }: AccessParts, { link, provider }: Session): boolean {
  if (link) return true;
  const by = providers.find(({ options }) => options.id === provider?.id);
  return provider?.vouched !== undefined && by?.isOperator(provider.vouched) === true;
}

/** Only the console's own pages may read: no other origin, no cache. */
const ownPages: Middleware = async (ctx, next) => {
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
const sameOrigin =
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

/** Only with a session; changes only with its token. */
const signedIn =
  (parts: AccessParts): Middleware =>
  async (ctx, next) => {
    const token = parts.cookie.get(ctx);
    await guarded(ctx, async () => {
      const session = await findSession(parts, token);
      if (!session) throw fail('not_signed_in');
      if (ctx.method === 'POST' && !equal(ctx.get('X-CSRF-Token'), session.csrf))
        throw fail('forged_request');
      sessionOfRequest.set(ctx.req, session);
      ctx.state.telemetry.add({ account: session.accountId });
    });
    await next();
  };

/** The rules are asked with every request: whoever is taken out of them changes nothing more. */
const operatorsOnly =
  (parts: AccessParts): Middleware =>
  async (ctx, next) => {
    await guarded(ctx, async () => {
      if (!isOperator(parts, sessionOf(ctx))) throw fail('operators_only');
    });
    await next();
  };

/** Gives the body of the answer. */
type Answer = (ctx: Context) => unknown;

/** Makes routes for one kind of visitor. `path` is below `/console/api/`; `before` runs before a body is read. */
interface Endpoint {
  readonly get: (path: string, answer: Answer, ...before: Middleware[]) => Route;
  readonly post: (path: string, answer: Answer, ...before: Middleware[]) => Route;
}

export interface Endpoints {
  readonly anyone: Endpoint;
  /** Whoever is signed in, about their own account. */
  readonly owner: Endpoint;
  readonly operator: Endpoint;
}

/** `body` reads JSON into the form of the request. */
export function createEndpoints(parts: AccessParts, body: Middleware): Endpoints {
  const isOwn = sameOrigin(parts.origin);
  const respond =
    (answer: Answer): Middleware =>
    async (ctx) => {
      ctx.body = await answer(ctx);
    };
  const endpoint = (...guards: readonly Middleware[]): Endpoint => ({
    get: (path, answer, ...before) => ({
      method: 'GET',
      paths: [`${prefix}/${path}`],
      handlers: [ownPages, ...guards, ...before, respond(answer)],
    }),
    post: (path, answer, ...before) => ({
      method: 'POST',
      paths: [`${prefix}/${path}`],
      handlers: [ownPages, isOwn, ...guards, ...before, body, respond(answer)],
    }),
  });
  const session = signedIn(parts);
  return { anyone: endpoint(), owner: endpoint(session), operator: endpoint(session, operatorsOnly(parts)) };
}
