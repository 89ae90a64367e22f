import { z } from 'zod';
import type { ApiKey } from '../../../accounts/accounts.ts';
import { isoTime, isoTimeOrNull } from '../../../billing/present.ts';
import { createKey, revokeKey } from '../../../commands/accounts.ts';
import { excerpt, fail } from '../../../errors.ts';
import type { Context } from '../../context.ts';
import { inBody, inPath, parse, text } from '../../requestParameters.ts';
import type { Route } from '../../router.ts';
import { accountIdOf, actorOf, type ConsoleParts, type Endpoints } from './access.ts';
import type { KeyInfo, NewKey } from './api.ts';

const newKey = z.object({ name: text(100) });

const keyInfo = ({ id, label, prefix, createdAt, lastUsedAt, revokedAt }: ApiKey): KeyInfo => ({
  id,
  name: label,
  prefix,
  createdAt: isoTime(createdAt),
  lastUsedAt: isoTimeOrNull(lastUsedAt),
  revokedAt: isoTimeOrNull(revokedAt),
});

/** Newest first, revoked ones at the end. */
export const keyInfos = (keys: readonly ApiKey[]): KeyInfo[] =>
  keys
    .toSorted(
      (a, b) => Number(a.revokedAt !== null) - Number(b.revokedAt !== null) || b.createdAt - a.createdAt,
    )
    .map(keyInfo);

export const noKey = (id: string) => fail('not_found', { detail: `There is no active key ${excerpt(id)}.` });

export function keyRoutes({ stores }: ConsoleParts, { owner }: Endpoints): Route[] {
  const { accounts } = stores;
  const create = async (ctx: Context): Promise<NewKey> => {
    const id = accountIdOf(ctx);
    const created = await createKey({ stores, actor: actorOf(ctx) }, id, parse(newKey, inBody(ctx)).name);
    const row = (await accounts.keys(id)).find((each) => each.id === created.id);
    if (!row) throw noKey(created.id);
    return { ...keyInfo(row), key: created.key };
  };
  const revoke = async (ctx: Context) => {
    const id = inPath(ctx, 'id');
    const keys = await accounts.keys(accountIdOf(ctx));
    if (!keys.some((key) => key.id === id && key.revokedAt === null)) throw noKey(id);
    await revokeKey({ stores, actor: actorOf(ctx) }, id);
    return { revoked: true };
  };
  return [
    owner.get('keys', async (ctx) => keyInfos(await accounts.keys(accountIdOf(ctx)))),
    owner.post('keys', create),
    owner.post('keys/:id/revoke', revoke),
  ];
}
