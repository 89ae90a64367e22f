import { accountRow, entryRow, keyRow, type Row, usageRow } from '../../../billing/present.ts';
import { formatCredits } from '../../../billing/price.ts';
import type { Stores } from '../../../billing/stores.ts';
import { createAccount, createKey, revokeKey } from '../../../commands/accounts.ts';
import type { CommandContext } from '../../../commands/command.ts';
import { postCredits, refundCharge } from '../../../commands/credits.ts';
import { fail } from '../../../errors.ts';
import { StoreError } from '../../../store/error.ts';
import type { Context, Middleware } from '../../context.ts';
import { storeErrors } from '../../middleware/storeErrors.ts';
import { inBody, inPath, parse } from '../../parameters.ts';
import type { Route } from '../../router.ts';
import { newAccount, newKey, page, posting, refunding, span } from './schema.ts';

export type AdminParts = Pick<Stores, 'accounts' | 'ledger' | 'transaction'>;

const idIn = (ctx: Context) => inPath(ctx, 'id');

/**
 * Operators' API: the same operations as `cutout accounts | keys | credits | usage`. `before` admits
 * operators only; bodies have any of the three content types.
 */
export function adminRoutes(before: readonly Middleware[], body: Middleware, parts: AdminParts): Route[] {
  const { accounts, ledger } = parts;
  const by = (ctx: Context): CommandContext => ({ stores: parts, actor: { id: null, address: ctx.ip } });
  const show = async (id: string): Promise<Row> => {
    const account = await accounts.get(id);
    const { credits, freeCalls } = await ledger.balance(id);
    return accountRow(account, credits, freeCalls);
  };
  const get = (path: string, answer: (ctx: Context) => unknown): Route => ({
    method: 'GET',
    paths: [`/admin/v1${path}`],
    handlers: [
      ...before,
      storeErrors,
      async (ctx) => {
        ctx.body = { data: await answer(ctx) };
      },
    ],
  });
  const post = (path: string, answer: (ctx: Context) => unknown): Route => ({
    method: 'POST',
    paths: [`/admin/v1${path}`],
    handlers: [
      ...before,
      storeErrors,
      body,
      async (ctx) => {
        ctx.body = { data: await answer(ctx) };
      },
    ],
  });

  return [
    get('/accounts', async () => {
      const newestFirst = await ledger.listBalances();
      return newestFirst.toReversed().map((row) => accountRow(row, row.credits, row.freeCalls));
    }),
    post('/accounts', async (ctx) => {
      const { id } = await createAccount(by(ctx), parse(newAccount, inBody(ctx)).name);
      return show(id);
    }),
    get('/accounts/:id', (ctx) => show(idIn(ctx))),
    get('/accounts/:id/keys', async (ctx) => {
      const { id } = await accounts.get(idIn(ctx));
      return (await accounts.keys(id)).map(keyRow);
    }),
    /** The only answer that contains a key. */
    post('/accounts/:id/keys', (ctx) =>
      createKey(by(ctx), idIn(ctx), parse(newKey, inBody(ctx)).label ?? ''),
    ),
    post('/keys/:id/revoke', async (ctx) => {
      if (!(await revokeKey(by(ctx), idIn(ctx)))) {
        throw new StoreError('STORE_UNKNOWN_KEY', `There is no active key ${idIn(ctx)}.`);
      }
      return { id: idIn(ctx), revoked: true };
    }),
    post('/accounts/:id/credits', async (ctx) => {
      const { kind, credits: amount, reference, note } = parse(posting, inBody(ctx));
      if (kind === 'grant' ? amount <= 0 : amount === 0) {
        throw fail('malformed_request', {
          detail: 'credits: a grant must be more than 0, an adjustment must not be 0.',
        });
      }
      const request = { kind, amount, ...(reference && { reference }), ...(note && { note }) };
      const { outcome, balance } = await postCredits(by(ctx), idIn(ctx), request);
      if (outcome === 'insufficient') {
        throw fail('insufficient_credits', { detail: `The balance is ${formatCredits(balance)}.` });
      }
      return { outcome, balance: formatCredits(balance) };
    }),
    post('/accounts/:id/refunds', async (ctx) => {
      const { reservation, note } = parse(refunding, inBody(ctx));
      const done = await refundCharge(by(ctx), { accountId: idIn(ctx), reservation, note });
      return { outcome: done ? 'posted' : 'duplicate', ...(await show(idIn(ctx))) };
    }),
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
