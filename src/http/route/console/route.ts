import type { Account } from '../../../accounts/accounts.ts';
import type { AuditEvent, AuditLog } from '../../../accounts/audit.ts';
import type { Provider } from '../../../accounts/oidc.ts';
import type { Session, Sessions } from '../../../accounts/sessions.ts';
import type { SignIns } from '../../../accounts/signIns.ts';
import type { Purchases } from '../../../billing/purchases.ts';
import type { Transactional } from '../../../billing/transaction.ts';
import type { CommandContext } from '../../../commands/command.ts';
import { deleteImage } from '../../../commands/deleteImage.ts';
import { eraseAccount } from '../../../commands/eraseAccount.ts';
import { createKey, revokeKey } from '../../../commands/keys.ts';
import { postCredits } from '../../../commands/postCredits.ts';
import { signInByLink } from '../../../commands/signIn.ts';
import { excerpt, fail } from '../../../errors.ts';
import { type Attempts, sourceOf, tried } from '../../../limits/attempts.ts';
import type { RateLimit } from '../../../limits/rate.ts';
import { slowedDown } from '../../../limits/refuse.ts';
import type { Context, Middleware } from '../../context.ts';
import type { Cookies } from '../../cookies.ts';
import { storeErrors } from '../../middleware/storeErrors.ts';
import { inBody, inPath, parse } from '../../parameters.ts';
import type { Route } from '../../router.ts';
import type { AccountInfo, Audit, Overview, SessionInfo, SignedOut, Statement } from './api.ts';
import { type ExportParts, exportArchive, statementCsv } from './export.ts';
import {
  accountInfo,
  auditInfo,
  entryInfo,
  imageInfo,
  keyInfo,
  keyInfos,
  pageOf,
  usageDays,
} from './present.ts';
import * as schema from './schema.ts';
import { operatorsOnly, ownPages, sameOrigin, sessionOf, signedIn } from './session.ts';

export interface ConsoleParts extends ExportParts {
  readonly stores: Transactional;
  readonly sessions: Sessions;
  readonly signIns: SignIns;
  readonly audit: AuditLog;
  readonly rate: RateLimit;
  /** None: the console opens through one-time links. */
  readonly providers: readonly Provider[];
  readonly cookie: Cookies;
  /** Failed sign-ins, by address. */
  readonly attempts: Attempts;
  readonly freePreviews: { readonly perMonth: number; readonly perDay: number };
  readonly purchases?: Purchases | undefined;
  /** How people reach the service, where that is configured. */
  readonly origin?: string | undefined;
  /** Where providers send people back after signing out. */
  readonly returnUrl: string;
}

const prefix = '/console/api';
const usageDaysShown = 30;
const dayMs = 86_400_000;

const noKey = (id: string) => fail('not_found', { detail: `There is no key ${excerpt(id)} in use.` });

/** The console's API (api.ts says what goes over the wire). `body` reads JSON into the form of the request. */
export function consoleRoutes(parts: ConsoleParts, body: Middleware): Route[] {
  const {
    accounts,
    ledger,
    improve,
    sessions,
    signIns,
    audit,
    rate,
    providers,
    cookie,
    attempts,
    purchases,
  } = parts;
  /** Its owner may have deleted it from another browser, whose session alone was ended. */
  const isGone = async ({ accountId }: Session) => (await accounts.get(accountId)).deletedAt !== null;
  /** A session that a version before this one kept has nothing that vouches for its owner. */
  const isOperator = ({ link, provider }: Session): boolean => {
    if (link) return true;
    const by = providers.find(({ options }) => options.id === provider?.id);
    return provider?.vouched !== undefined && by?.isOperator(provider.vouched) === true;
  };
  const operators = operatorsOnly(isOperator);
  const guard = signedIn(sessions, cookie, isGone);
  const account = (ctx: Context): Promise<Account> => accounts.get(sessionOf(ctx).accountId);
  const by = (ctx: Context): CommandContext => ({
    stores: parts.stores,
    actor: { id: sessionOf(ctx).accountId, address: ctx.ip },
  });
  /** Of what changes nothing in the books. */
  const write = (ctx: Context, action: AuditEvent['action']) =>
    audit.write({ action, actor: sessionOf(ctx).accountId, address: ctx.ip });

  const answer =
    (make: (ctx: Context) => unknown): Middleware =>
    async (ctx) => {
      ctx.body = await make(ctx);
    };
  const get = (path: string, make: (ctx: Context) => unknown, ...more: Middleware[]): Route => ({
    method: 'GET',
    paths: [`${prefix}/${path}`],
    handlers: [ownPages, guard, ...more, answer(make)],
  });
  const post = (path: string, make: (ctx: Context) => unknown, ...more: Middleware[]): Route => ({
    method: 'POST',
    paths: [`${prefix}/${path}`],
    handlers: [ownPages, sameOrigin(parts.origin), guard, ...more, body, answer(make)],
  });

  const describe = async (ctx: Context, token = cookie.get(ctx)): Promise<SessionInfo> => {
    const session = token === undefined ? undefined : await sessions.find(token);
    if (!session || (await isGone(session))) {
      return {
        signedIn: false,
        providers: providers.map(({ options: { id, name } }) => ({ id, name })),
        link: providers.length === 0,
      };
    }
    const { id, name, email } = await accounts.get(session.accountId);
    return {
      signedIn: true,
      account: { id, name, email },
      operator: isOperator(session),
      csrf: session.csrf,
      expiresAt: new Date(sessions.expiresAt(session)).toISOString(),
      selling: purchases !== undefined,
    };
  };

  const overview = async (ctx: Context): Promise<Overview> => {
    const { id } = await account(ctx);
    const now = Date.now();
    const from = now - (now % dayMs) - (usageDaysShown - 1) * dayMs;
    const { credits } = await ledger.balance(id);
    const { limit, remaining, retryAfter } = await rate.state(id);
    return {
      credits: credits / 4,
      free: { ...(await ledger.freePreviews(id)), ...parts.freePreviews },
      days: usageDays(await ledger.usage({ from }, id), from, now),
      rate: rate.limited
        ? { limit, remaining, resetSeconds: retryAfter }
        : { limit: null, remaining: null, resetSeconds: 0 },
    };
  };

  const statement = async (ctx: Context): Promise<Statement> => {
    const { limit, ...page } = parse(schema.statementPage, ctx.query);
    const { id } = await account(ctx);
    const { entries, next } = pageOf(await ledger.history(id, { ...page, limit: limit + 1 }), limit);
    return { entries: entries.map(entryInfo), next };
  };

  const info = async (id: string): Promise<AccountInfo> => {
    const found = await accounts.find(id);
    if (!found) throw fail('not_found', { detail: `There is no account ${excerpt(id)}.` });
    return accountInfo(found, (await ledger.balance(id)).credits, await accounts.keys(id));
  };

  /** A key of this account, still in use. */
  const ownKey = async (ctx: Context) => {
    const id = inPath(ctx, 'id');
    const keys = await accounts.keys((await account(ctx)).id);
    const key = keys.find((each) => each.id === id && each.revokedAt === null);
    if (!key) throw noKey(id);
    return key;
  };

  const slowDown = (wait: number) => {
    if (wait > 0) throw slowedDown('failed sign-ins', wait);
  };
  /** Before the body is read: nobody is known here. */
  const brake: Middleware = async (ctx, next) => {
    slowDown(await attempts.wait(sourceOf(ctx.ip)));
    await next();
  };

  const openLink: Middleware = async (ctx) => {
    const { token: link } = parse(schema.link, inBody(ctx));
    // Looked at before it is taken: who has to wait comes back with the same link.
    slowDown(await tried(attempts, sourceOf(ctx.ip), await signIns.isGood(link)));
    const found = await signInByLink({ stores: parts.stores, signIns, address: ctx.ip }, link);
    if (!found) {
      throw fail('not_signed_in', {
        detail: 'This link was used before or is too old. `cutout console` prints a new one.',
      });
    }
    const { token } = await sessions.open({ accountId: found.id, link: true }, cookie.get(ctx));
    cookie.set(ctx, token);
    ctx.body = await describe(ctx, token);
  };

  const signOut = async (ctx: Context): Promise<SignedOut> => {
    const session = sessionOf(ctx);
    const token = cookie.get(ctx);
    if (token !== undefined) await sessions.end(token);
    cookie.clear(ctx);
    await write(ctx, 'sign-out');
    const provider = providers.find(({ options }) => options.id === session.provider?.id);
    const url = session.provider && (await provider?.signOutUrl(session.provider.idToken, parts.returnUrl));
    return { redirect: url?.href ?? null };
  };

  const deleteAccount = async (ctx: Context) => {
    const { id, name } = await account(ctx);
    if (parse(schema.deletion, inBody(ctx)).name !== name)
      throw fail('malformed_request', { detail: 'name: expected the name of the account.' });
    if (id === 'local')
      throw fail('malformed_request', { detail: 'The local account belongs to the installation.' });
    await eraseAccount({ ...by(ctx), improve }, id);
    const token = cookie.get(ctx);
    if (token !== undefined) await sessions.end(token);
    cookie.clear(ctx);
    return { deleted: true };
  };

  return [
    { method: 'GET', paths: [`${prefix}/session`], handlers: [ownPages, answer((ctx) => describe(ctx))] },
    {
      method: 'POST',
      paths: [`${prefix}/link`],
      handlers: [ownPages, sameOrigin(parts.origin), brake, body, openLink],
    },
    post('sign-out', signOut),
    get('overview', overview),

    get('keys', async (ctx) => keyInfos(await accounts.keys((await account(ctx)).id))),
    post('keys', async (ctx) => {
      const { id } = await account(ctx);
      const created = await createKey(by(ctx), id, parse(schema.newKey, inBody(ctx)).name);
      const row = (await accounts.keys(id)).find((each) => each.id === created.id);
      if (!row) throw noKey(created.id);
      return { ...keyInfo(row), key: created.key };
    }),
    post('keys/:id/revoke', async (ctx) => {
      const { id } = await ownKey(ctx);
      await revokeKey(by(ctx), id);
      return { revoked: true };
    }),

    get('statement', statement),
    get('statement.csv', async (ctx) => {
      ctx.set('Content-Type', 'text/csv; charset=utf-8');
      ctx.attachment('statement.csv');
      const { id } = await account(ctx);
      return statementCsv(await ledger.history(id, parse(schema.statementFilter, ctx.query)));
    }),

    ...(purchases
      ? [
          get('packs', () =>
            purchases.packs.map(({ id, credits, price, currency }) => ({
              id,
              credits: credits / 4,
              price,
              currency,
            })),
          ),
          post('checkout', async (ctx) => {
            const url = await purchases.checkout(
              (await account(ctx)).id,
              parse(schema.checkout, inBody(ctx)).pack,
            );
            if (url === undefined) throw fail('not_found', { detail: 'There is no such pack.' });
            return { url };
          }),
        ]
      : []),

    get('images', async (ctx) => {
      const images = await improve.list({ accountId: (await account(ctx)).id });
      return images.toReversed().map(imageInfo);
    }),
    post('images/:id/delete', async (ctx) => {
      const id = inPath(ctx, 'id');
      if (!(await deleteImage({ ...by(ctx), improve }, id, (await account(ctx)).id)))
        throw fail('not_found', { detail: `There is no image ${excerpt(id)}.` });
      return { deleted: true };
    }),

    get('export', async (ctx) => {
      await write(ctx, 'data.export');
      ctx.attachment('cutout-data.zip');
      ctx.type = 'application/zip';
      return exportArchive(await account(ctx), parts);
    }),
    post('delete', deleteAccount),

    get(
      'operator/accounts',
      async (ctx) => {
        const wanted = parse(schema.search, ctx.query).search.toLowerCase();
        const found = (await accounts.list()).filter(({ id, name, email }) =>
          [id, name, email ?? ''].some((text) => text.toLowerCase().includes(wanted)),
        );
        return Promise.all(found.map(({ id }) => info(id)));
      },
      operators,
    ),
    get('operator/accounts/:id', (ctx) => info(inPath(ctx, 'id')), operators),
    post(
      'operator/accounts/:id/grant',
      async (ctx) => {
        const id = inPath(ctx, 'id');
        await info(id);
        const { credits, note, reference } = parse(schema.grant, inBody(ctx));
        await postCredits(by(ctx), id, { kind: 'grant', amount: credits, note, reference });
        return info(id);
      },
      operators,
      storeErrors,
    ),
    post(
      'operator/keys/:id/revoke',
      async (ctx) => {
        const id = inPath(ctx, 'id');
        if (!(await revokeKey(by(ctx), id))) throw noKey(id);
        return { revoked: true };
      },
      operators,
    ),
    get(
      'operator/audit',
      async (ctx): Promise<Audit> => {
        const { before, limit } = parse(schema.auditPage, ctx.query);
        const { entries, next } = pageOf(await audit.list({ before, limit: limit + 1 }), limit);
        return { entries: entries.map(auditInfo), next };
      },
      operators,
    ),
  ];
}
