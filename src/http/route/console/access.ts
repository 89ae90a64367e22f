import { timingSafeEqual } from 'node:crypto';
import type { Provider } from '../../../accounts/oidc.ts';
import { isOperator } from '../../../accounts/operators.ts';
import type { Session, Sessions } from '../../../accounts/sessions.ts';
import type { SignIns } from '../../../accounts/signIns.ts';
import type { BillingOptions } from '../../../billing/price.ts';
import type { Stores } from '../../../billing/stores.ts';
import type { Purchases } from '../../../billing/stripeCheckout.ts';
import type { Actor } from '../../../commands/command.ts';
import { fail } from '../../../errors.ts';
import type { Improve } from '../../../improve/improve.ts';
import type { Attempts } from '../../../limits/attempts.ts';
import type { RateLimit } from '../../../limits/rate.ts';
import type { Context, Middleware } from '../../context.ts';
import type { Cookies } from '../../cookies.ts';
import type { Route } from '../../router.ts';

/** What the console's API works with. */
export interface ConsoleParts {
  readonly stores: Stores;
  readonly improve: Improve;
  readonly rate: RateLimit;
  readonly sessions: Sessions;
  readonly signIns: SignIns;
  /** Failed sign-ins, by address. */
  readonly attempts: Attempts;
  /** Empty: the console opens through one-time links. */
  readonly providers: readonly Provider[];
  readonly cookie: Cookies;
  /** Absent: nothing is for sale. */
  readonly purchases?: Purchases | undefined;
  readonly billing: BillingOptions;
  /** Public address of the service, if configured. */
  readonly origin?: string | undefined;
  /** The page to which providers redirect people after signing out. */
  readonly returnUrl: string;
}

const prefix = '/console/api';

/** Sessions by request, kept apart from the request's own state. */
const sessionOfRequest = new WeakMap<object, Session>();

export function sessionOf(ctx: Context): Session {
  const session = sessionOfRequest.get(ctx.req);
  if (!session) throw fail('internal_error', { cause: new Error('signedIn must come first') });
  return session;
}

export const accountIdOf = (ctx: Context): string => sessionOf(ctx).accountId;

/** The signed-in account as actor of commands and audit events. */
export const actorOf = (ctx: Context): Actor => ({ id: accountIdOf(ctx), address: ctx.ip });

/** The session of a cookie; undefined if there is none, or its account was deleted. */
export async function findSession(
  { stores, sessions }: ConsoleParts,
  token: string | undefined,
): Promise<Session | undefined> {
  const session = token === undefined ? undefined : await sessions.find(token);
  if (!session) return undefined;
  // The owner may have deleted the account from another browser, which ended that browser's session only.
  const { deletedAt } = await stores.accounts.get(session.accountId);
  return deletedAt === null ? session : undefined;
}

/** Sessions stored by an earlier version lack what the provider vouched for. */
export function isOperatorSession({ providers }: ConsoleParts, { link, provider }: Session): boolean {
  if (link) return true;
  const by = providers.find(({ options }) => options.id === provider?.id);
  return by !== undefined && provider?.vouched !== undefined && isOperator(by.options, provider.vouched);
}

/** Readable by the console's own pages only: not by other origins, not from caches. */
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

/** Protects against cross-site requests. `origin`: public address of the service, if configured. */
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

/** Requires a session, and for changes its CSRF token. */
const signedIn =
  (parts: ConsoleParts): Middleware =>
  async (ctx, next) => {
    const session = await findSession(parts, parts.cookie.get(ctx));
    if (!session) throw fail('not_signed_in');
    if (ctx.method === 'POST' && !equal(ctx.get('X-CSRF-Token'), session.csrf)) throw fail('forged_request');
    sessionOfRequest.set(ctx.req, session);
    ctx.state.telemetry.add({ account: session.accountId });
    await next();
  };

/** The rules are evaluated with every request, so that removing an operator is effective at once. */
const operatorsOnly =
  (parts: ConsoleParts): Middleware =>
  async (ctx, next) => {
    if (!isOperatorSession(parts, sessionOf(ctx))) throw fail('operators_only');
    await next();
  };

/** Returns the body of the answer. */
type Handler = (ctx: Context) => unknown;

/** Creates routes for one kind of visitor. `path` is below `/console/api/`; `before`: further guards before the body. */
interface Endpoint {
  readonly get: (path: string, answer: Handler, ...before: Middleware[]) => Route;
  readonly post: (path: string, answer: Handler, ...before: Middleware[]) => Route;
}

export interface Endpoints {
  readonly anyone: Endpoint;
  /** Signed-in people, for their own account. */
  readonly owner: Endpoint;
  readonly operator: Endpoint;
}

/**
 * `body` reads JSON into the form of the request. Guards run before the body, so that a refused request uploads nothing,
 * and again after it, because uploading may take long.
 */
export function createEndpoints(parts: ConsoleParts, body: Middleware): Endpoints {
  const isOwn = sameOrigin(parts.origin);
  const respond =
    (answer: Handler): Middleware =>
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
      handlers: [ownPages, isOwn, ...guards, ...before, body, ...guards, respond(answer)],
    }),
  });
  const session = signedIn(parts);
  return { anyone: endpoint(), owner: endpoint(session), operator: endpoint(session, operatorsOnly(parts)) };
}
