import type { Account, CreatedKey } from '../accounts/accounts.ts';
import type { QuarterCredits } from '../billing/price.ts';
import { type CommandContext, inTransaction } from './command.ts';
import { postCredits } from './credits.ts';

export const createAccount = (context: CommandContext, name: string): Promise<Account> =>
  inTransaction(context, async ({ stores, record }) => {
    const account = await stores.accounts.create(name);
    await record({ action: 'account.create', subject: account.id });
    return account;
  });

/** Creates an account with its first key, and with credits if they are more than 0. */
export const createAccountWithKey = (
  context: CommandContext,
  { name, credits }: { readonly name: string; readonly credits: QuarterCredits },
): Promise<{ account: Account; key: CreatedKey }> =>
  inTransaction(context, async (transaction) => {
    const account = await createAccount(transaction, name);
    const key = await createKey(transaction, account.id, 'first');
    if (credits > 0)
      await postCredits(transaction, account.id, { kind: 'grant', amount: credits, note: 'account created' });
    return { account, key };
  });

/** Creates a key. Rejects with STORE_UNKNOWN_ACCOUNT. */
export const createKey = (context: CommandContext, accountId: string, label: string): Promise<CreatedKey> =>
  inTransaction(context, async ({ stores, record }) => {
    const created = await stores.accounts.createKey(accountId, label);
    await record({ action: 'key.create', subject: created.id });
    return created;
  });

/** False, without an audit event, if there is no such key or it was revoked before. */
export const revokeKey = (context: CommandContext, id: string): Promise<boolean> =>
  inTransaction(context, async ({ stores, record }) => {
    const revoked = await stores.accounts.revokeKey(id);
    if (revoked) await record({ action: 'key.revoke', subject: id });
    return revoked;
  });
