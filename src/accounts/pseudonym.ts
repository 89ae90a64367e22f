import { createHmac } from 'node:crypto';
import type { Sql } from '../store/database.ts';
import { sharedSecret } from '../store/secretTable.ts';

/** Names people without saying who they are: HMAC-SHA-256 of issuer and subject with a key of these books. */
export type Pseudonymise = (issuer: string, subject: string) => Buffer;

export async function createPseudonymise(sql: Sql): Promise<Pseudonymise> {
  const key = await sharedSecret(sql, 'person');
  return (issuer, subject) =>
    createHmac('sha256', key)
      .update(JSON.stringify([issuer, subject]))
      .digest();
}
