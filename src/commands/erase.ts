import type { Improve } from '../improve/improve.ts';
import { ImproveTable } from '../store/improveTable.ts';
import { type CommandContext, inTransaction } from './command.ts';

/**
 * Erases the account, as `Accounts.erase` says, and hides its images. Their bytes are removed at once if the bucket
 * can be reached, else by the next sweep, which reports failures. Rejects with STORE_UNKNOWN_ACCOUNT.
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

/**
 * Deletes an image that was handed in; with `accountId` only one of that account. False if there is none. The
 * transaction hides it from everyone; then its bytes are removed. Rejects if the bucket fails: the same
 * command, or the next sweep, removes them later.
 */
export async function deleteImage(
  context: CommandContext & { readonly improve: Improve },
  id: string,
  accountId?: string,
): Promise<boolean> {
  const image = await context.improve.find(id);
  if (!image || (accountId !== undefined && image.accountId !== accountId)) return false;
  await inTransaction(context, async ({ stores, record }) => {
    if (await new ImproveTable(stores.sql).hide(id)) await record({ action: 'image.delete', subject: id });
  });
  await context.improve.remove(image);
  return true;
}
