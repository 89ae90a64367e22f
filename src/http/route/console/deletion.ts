import { z } from 'zod';
import { localAccountId } from '../../../commands/ensureLocalAccount.ts';
import { eraseAccount } from '../../../commands/erase.ts';
import { malformed } from '../../../errors.ts';
import type { Context } from '../../context.ts';
import { inBody, parse, text } from '../../requestParameters.ts';
import type { Route } from '../../router.ts';
import { accountIdOf, actorOf, type ConsoleParts, type Endpoints } from './access.ts';
import { endSession } from './session.ts';

const deletion = z.object({ name: text(200) });

export function deletionRoutes(parts: ConsoleParts, { owner }: Endpoints): Route[] {
  const { stores, improve } = parts;
  const deleteAccount = async (ctx: Context) => {
    const { id, name } = await stores.accounts.get(accountIdOf(ctx));
    if (parse(deletion, inBody(ctx)).name !== name)
      throw malformed('name: expected the name of the account.');
    if (id === localAccountId) throw malformed('The local account belongs to the installation.');
    await eraseAccount({ stores, improve, actor: actorOf(ctx) }, id);
    await endSession(parts, ctx);
    return { deleted: true };
  };
  return [owner.post('delete', deleteAccount)];
}
