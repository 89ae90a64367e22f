import { z } from 'zod';
import type { Account } from '../../../accounts/accounts.ts';
import type { AuditRow } from '../../../accounts/audit.ts';
import type { AccountBalance } from '../../../billing/accountList.ts';
import { isoTime, isoTimeOrNull } from '../../../billing/present.ts';
import { type QuarterCredits, toCredits } from '../../../billing/price.ts';
import { revokeKey } from '../../../commands/accounts.ts';
import { postCredits } from '../../../commands/credits.ts';
import { excerpt, fail } from '../../../errors.ts';
import type { Context } from '../../context.ts';
import { storeErrors } from '../../middleware/errors.ts';
import { credits, inBody, inPath, parse, text } from '../../requestParameters.ts';
import type { Route } from '../../router.ts';
import { actorOf, type ConsoleParts, type Endpoints } from './access.ts';
import type { AccountInfo, AccountSummary, AuditEntry, Page } from './api.ts';
import { keyInfos, noKey } from './keys.ts';
import { numberedPage, numberOf, readPage, timeCursorOf, timedPage } from './page.ts';

const amount = credits.refine((value) => value > 0, 'expected more than 0');
const grantRequest = z.object({ credits: amount, note: text(500), reference: text(100) });
const listRequest = timedPage.extend({ search: z.string().max(200).default('') });

const summary = (
  { id, name, email, createdAt, deletedAt }: Account,
  credits: QuarterCredits,
): AccountSummary => ({
  id,
  name,
  email,
  credits: toCredits(credits),
  createdAt: isoTime(createdAt),
  deletedAt: isoTimeOrNull(deletedAt),
});

const cursorOf = ({ id, createdAt }: AccountBalance) => timeCursorOf({ id, at: createdAt });

/** Operators: all accounts, their credits and keys. */
export function accountRoutes({ stores }: ConsoleParts, { operator }: Endpoints): Route[] {
  const { accounts, ledger } = stores;
  const list = (ctx: Context): Promise<Page<AccountSummary>> => {
    const { limit, ...wanted } = parse(listRequest, ctx.query);
    const read = (most: number) => ledger.listBalances({ ...wanted, limit: most });
    return readPage(limit, read, cursorOf, (row) => summary(row, row.credits));
  };
  const info = async (id: string): Promise<AccountInfo> => {
    const found = await accounts.find(id);
    if (!found) throw fail('not_found', { detail: `There is no account ${excerpt(id)}.` });
    const { credits } = await ledger.balance(id);
    return { ...summary(found, credits), keys: keyInfos(await accounts.keys(id)) };
  };
  const grant = async (ctx: Context) => {
    const id = inPath(ctx, 'id');
    await info(id);
    const { credits, note, reference } = parse(grantRequest, inBody(ctx));
    await postCredits({ stores, actor: actorOf(ctx) }, id, {
      kind: 'grant',
      amount: credits,
      note,
      reference,
    });
    return info(id);
  };
  const revoke = async (ctx: Context) => {
    const id = inPath(ctx, 'id');
    if (!(await revokeKey({ stores, actor: actorOf(ctx) }, id))) throw noKey(id);
    return { revoked: true };
  };
  return [
    operator.get('operator/accounts', list),
    operator.get('operator/accounts/:id', (ctx) => info(inPath(ctx, 'id'))),
    operator.post('operator/accounts/:id/grant', grant, storeErrors),
    operator.post('operator/keys/:id/revoke', revoke),
  ];
}

const auditEntry = (row: AuditRow): AuditEntry => ({ ...row, at: isoTime(row.at) });

/** Operators: the audit log, newest first. */
export function auditRoutes({ stores }: ConsoleParts, { operator }: Endpoints): Route[] {
  const list = (ctx: Context): Promise<Page<AuditEntry>> => {
    const { before, limit } = parse(numberedPage, ctx.query);
    return readPage(limit, (most) => stores.audit.list({ before, limit: most }), numberOf, auditEntry);
  };
  return [operator.get('operator/audit', list)];
}
