import type { CreatedKey } from '../accounts/accounts.ts';
import { type CommandContext, inTransaction } from './command.ts';

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
