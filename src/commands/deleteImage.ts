import type { Improve } from '../improve/improve.ts';
import { ImproveTable } from '../store/improveTable.ts';
import { type CommandContext, inTransaction } from './command.ts';

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
