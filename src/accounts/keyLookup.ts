import { timingSafeEqual } from 'node:crypto';
import type { AccountRow, AccountTable, KeyCandidate } from '../store/accountTable.ts';
import { bucketOf } from './keyFormat.ts';

/** Compared if there is no candidate, so that unknown keys take the same path as known ones. */
const noHash = Buffer.alloc(32);

export interface KeyMatch {
  readonly keyId: string;
  readonly account: AccountRow;
}

/**
 * The account of a key, by its hash; undefined if the key is unknown or revoked, or its account deleted. No early exit:
 * every candidate is compared completely, and there is always at least one comparison.
 */
export async function findKey(
  table: Pick<AccountTable, 'candidates'>,
  hash: Buffer,
): Promise<KeyMatch | undefined> {
  let found: KeyCandidate | undefined;
  timingSafeEqual(hash, noHash);
  for (const candidate of await table.candidates(bucketOf(hash))) {
    if (timingSafeEqual(hash, candidate.hash)) found = candidate;
  }
  if (!found || found.revokedAt !== null || found.deletedAt !== null) return undefined;
  const { keyId, id, name, email, createdAt, deletedAt } = found;
  return { keyId, account: { id, name, email, createdAt, deletedAt } };
}
