import type { Sql } from './database.ts';

export interface AccountRow {
  readonly id: string;
  readonly name: string;
  /** E-mail address of the person who signed in; for display only. */
  readonly email: string | null;
  readonly createdAt: number;
  /** Unix milliseconds of the deletion by its owner. */
  readonly deletedAt: number | null;
}

/** The columns of `account`, as `AccountRow` names them. */
export const accountColumns = `account.id, account.name, account.email, account.created_at AS "createdAt",
  account.deleted_at AS "deletedAt"`;

/**
 * Locks the row of an account until the transaction ends; false if there is none or its owner deleted it.
 * Whatever adds to an account calls this first: a deletion, on any node, then either comes before and is
 * seen, or comes after and includes the addition.
 */
export async function holdLiving(sql: Sql, id: string): Promise<boolean> {
  const held = await sql.get(
    `SELECT id FROM account WHERE id = @id AND deleted_at IS NULL${sql.dialect.forUpdate}`,
    { id },
  );
  return held !== undefined;
}
