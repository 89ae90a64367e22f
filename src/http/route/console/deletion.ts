import { z } from 'zod';
import type { Transactional } from '../../../billing/transaction.ts';
import { localAccountId } from '../../../commands/ensureLocalAccount.ts';
import { eraseAccount } from '../../../commands/erase.ts';
import { fail } from '../../../errors.ts';
import type { Improve } from '../../../improve/improve.ts';
import type { Context } from '../../context.ts';
import { inBody, parse, text } from '../../requestParameters.ts';
import type { Route } from '../../router.ts';
import { type AccessParts, accountIdOf, actorOf, type Endpoints } from './access.ts';
import { endSession } from './session.ts';

export interface DeletionParts extends Pick<AccessParts, 'accounts' | 'sessions' | 'cookie'> {
  readonly stores: Transactional;
  readonly improve: Improve;
}

const deletion = z.object({ name: text(200) });

/** Deletion of an account by its owner. */
export function deletionRoutes(parts: DeletionParts, { owner }: Endpoints): Route[] {
  const { accounts, stores, improve } = parts;
  const deleteAccount = async (ctx: Context) => {
    const { id, name } = await accounts.get(accountIdOf(ctx));
    if (parse(deletion, inBody(ctx)).name !== name)
      throw fail('malformed_request', { detail: 'name: expected the name of the account.' });
    if (id === localAccountId)
      throw fail('malformed_request', { detail: 'The local account belongs to the installation.' });
    await eraseAccount({ stores, improve, actor: actorOf(ctx) }, id);
    await endSession(parts, ctx);
    return { deleted: true };
  };
  return [owner.post('delete', deleteAccount)];
}
