import { accountRow, entryRow, keyRow, type Row, usageRow } from '../../../billing/present.ts';
import { formatCredits } from '../../../billing/price.ts';
import type { Stores } from '../../../billing/stores.ts';
import { createAccount, createKey, revokeKey } from '../../../commands/accounts.ts';
import type { CommandContext } from '../../../commands/command.ts';
import { postCredits, refundCharge } from '../../../commands/credits.ts';
import { fail, malformed } from '../../../errors.ts';
import { StoreError } from '../../../store/error.ts';
import type { Context, Middleware } from '../../context.ts';
import { storeErrors } from '../../middleware/errors.ts';
import { inBody, inPath, parse } from '../../requestParameters.ts';
import type { Route } from '../../router.ts';
import { newAccount, newKey, page, posting, refunding, span } from './schema.ts';

export type AdminParts = Pick<Stores, 'accounts' | 'ledger' | 'transaction'>;

const idIn = (ctx: Context) => inPath(ctx, 'id');

type Endpoints = ReturnType<typeof endpointsOf>;

/** What creates routes below `/admin/v1` that answer with `data`. */
const endpointsOf = (before: readonly Middleware[], body: Middleware) => {
  const endpoint =
    (method: Route['method'], guards: readonly Middleware[]) =>
    (path: string, answer: (ctx: Context) => unknown): Route => ({
      method,
      paths: [`/admin/v1${path}`],
      handlers: [
        ...before,
        storeErrors,
        ...guards,
        async (ctx) => {
          ctx.body = { data: await answer(ctx) };
        },
      ],
    });
  return { get: endpoint('GET', []), post: endpoint('POST', [body]) };
};

const actingOn = (stores: AdminParts, ctx: Context): CommandContext => ({
  stores,
  actor: { id: null, address: ctx.ip },
});

/** Returns an account's row with its balance. Rejects for an account that does not exist. */
async function showAccount({ accounts, ledger }: AdminParts, id: string): Promise<Row> {
  return accountRow({ ...(await accounts.get(id)), ...(await ledger.balance(id)) });
}

function accountRoutes(parts: AdminParts, { get, post }: Endpoints): Route[] {
  const { ledger } = parts;
  return [
    get('/accounts', async () => (await ledger.listBalances()).toReversed().map(accountRow)),
    post('/accounts', async (ctx) => {
      const { id } = await createAccount(actingOn(parts, ctx), parse(newAccount, inBody(ctx)).name);
      return showAccount(parts, id);
    }),
    get('/accounts/:id', (ctx) => showAccount(parts, idIn(ctx))),
  ];
}

function keyRoutes(parts: AdminParts, { get, post }: Endpoints): Route[] {
  const { accounts } = parts;
  return [
    get('/accounts/:id/keys', async (ctx) => {
      const { id } = await accounts.get(idIn(ctx));
      return (await accounts.keys(id)).map(keyRow);
    }),
    /** The only answer that contains a key. */
    post('/accounts/:id/keys', (ctx) =>
      createKey(actingOn(parts, ctx), idIn(ctx), parse(newKey, inBody(ctx)).label ?? ''),
    ),
    post('/keys/:id/revoke', async (ctx) => {
      if (!(await revokeKey(actingOn(parts, ctx), idIn(ctx)))) {
        throw new StoreError('STORE_UNKNOWN_KEY', `There is no active key ${idIn(ctx)}.`);
      }
      return { id: idIn(ctx), revoked: true };
    }),
  ];
}

function creditRoutes(parts: AdminParts, { post }: Endpoints): Route[] {
  return [
    post('/accounts/:id/credits', async (ctx) => {
      const { kind, credits: amount, reference, note } = parse(posting, inBody(ctx));
      if (kind === 'grant' ? amount <= 0 : amount === 0)
        throw malformed('credits: a grant must be more than 0, an adjustment must not be 0.');
      const request = { kind, amount, ...(reference && { reference }), ...(note && { note }) };
      const { outcome, balance } = await postCredits(actingOn(parts, ctx), idIn(ctx), request);
      if (outcome === 'insufficient')
        throw fail('insufficient_credits', { detail: `The balance is ${formatCredits(balance)}.` });
      return { outcome, balance: formatCredits(balance) };
    }),
    post('/accounts/:id/refunds', async (ctx) => {
      const { reservation, note } = parse(refunding, inBody(ctx));
      const charge = { accountId: idIn(ctx), reservation, note };
      const done = await refundCharge(actingOn(parts, ctx), charge);
      return { outcome: done ? 'posted' : 'duplicate', ...(await showAccount(parts, idIn(ctx))) };
    }),
  ];
}

function statementRoutes({ accounts, ledger }: AdminParts, { get }: Endpoints): Route[] {
  return [
    get('/accounts/:id/statement', async (ctx) => {
      const { id } = await accounts.get(idIn(ctx));
      return (await ledger.statement(id, parse(page, ctx.query))).map(entryRow);
    }),
    get('/accounts/:id/usage', async (ctx) => {
      const { id } = await accounts.get(idIn(ctx));
      return (await ledger.usage(parse(span, ctx.query), id)).map(usageRow);
    }),
    get('/usage', async (ctx) => (await ledger.usage(parse(span, ctx.query))).map(usageRow)),
  ];
}

/**
 * Creates the operators' API: the same operations as `cutout accounts | keys | credits | usage`. `before` admits
 * operators only; bodies have any of the three content types.
 */
export function adminRoutes(before: readonly Middleware[], body: Middleware, parts: AdminParts): Route[] {
  const endpoints = endpointsOf(before, body);
  return [accountRoutes, keyRoutes, creditRoutes, statementRoutes].flatMap((routesOf) =>
    routesOf(parts, endpoints),
  );
}
