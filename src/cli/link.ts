import { linkMinutes, SignIns } from '../accounts/signIns.ts';
import type { Stores } from '../billing/stores.ts';
import { localAccountId } from '../commands/ensureLocalAccount.ts';
import type { HttpConfig } from '../config/http.ts';
import { UserError } from '../errors.ts';
import type { Output } from './modelsProgress.ts';

/**
 * `cutout console`: prints a one-time link to the console of the local account, for a running server on this
 * database.
 */
export async function printLink(
  { publicUrl, port }: HttpConfig,
  open: () => Promise<Stores>,
  out: Output,
): Promise<void> {
  const stores = await open();
  try {
    const { accounts, database } = stores;
    if (!(await accounts.find(localAccountId)))
      throw new UserError('There is no local account yet: `cutout serve` creates it at its first start.');
    const token = await new SignIns(database).createLink(localAccountId);
    const url = publicUrl ?? `http://127.0.0.1:${port}`;
    out.write(`${url}/console#${token}\nIt works once and expires after ${linkMinutes} minutes.\n`);
  } finally {
    await stores.close();
  }
}
