import { createHmac } from 'node:crypto';
import type { Sql } from '../store/database.ts';
import { sharedSecret } from '../store/secretTable.ts';

/** Pseudonym of a person: HMAC-SHA-256 of issuer and subject with a key of this database. */
export type Pseudonymise = (issuer: string, subject: string) => Buffer;

export async function createPseudonymise(sql: Sql): Promise<Pseudonymise> {
  const key = await sharedSecret(sql, 'person');
  return (issuer, subject) =>
    createHmac('sha256', key)
      .update(JSON.stringify([issuer, subject]))
      .digest();
}
