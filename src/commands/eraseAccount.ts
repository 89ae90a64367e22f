import type { Improve } from '../improve/improve.ts';
import { ImproveTable } from '../store/improveTable.ts';
import { type CommandContext, inTransaction } from './command.ts';

/**
 * Erases the account, as `Accounts.erase` says, and hides the images it handed in. Their bytes are removed at
 * once if the bucket can be reached, else by the next sweep, which reports failures. Rejects with
 * STORE_UNKNOWN_ACCOUNT.
 */
export async function eraseAccount(
  context: CommandContext & { readonly improve: Improve },
  accountId: string,
): Promise<void> {
  const images = await inTransaction(context, async ({ stores, record }) => {
    const { deletedAt } = await stores.accounts.lock(accountId);
    await stores.accounts.erase(accountId);
    if (deletedAt === null) await record({ action: 'account.delete', subject: accountId });
    return new ImproveTable(stores.sql).hideAll(accountId);
  });
  for (const image of images) await context.improve.remove(image).catch(() => {});
}
