import { Accounts } from '../accounts/accounts.ts';
import { AuditLog } from '../accounts/audit.ts';
import { messageOf } from '../errors.ts';
import type { Now } from '../store/clock.ts';
import type { Database, Sql } from '../store/database.ts';
import { StoreError } from '../store/error.ts';
import { Postings } from './postings.ts';

/** Objects that take part in one transaction. */
export interface StoresTransaction extends Transactional {
  readonly accounts: Accounts;
  readonly ledger: Postings;
  readonly audit: Pick<AuditLog, 'write'>;
  /** The transaction, for other tables of the database. */
  readonly sql: Sql;
}

export interface Transactional {
  /**
   * What `work` does with what it is given is atomic, as in `Sql.transaction`, or part of the transaction around it.
   * If an audit event cannot be written, nothing happens: STORE_UNAVAILABLE.
   */
  transaction<T>(work: (stores: StoresTransaction) => Promise<T>): Promise<T>;
}

/** See `Transactional`. */
export async function transaction<T>(
  database: Database,
  now: Now | undefined,
  work: (stores: StoresTransaction) => Promise<T>,
): Promise<T> {
  let unrecorded: unknown;
  try {
    return await database.transaction((sql) => {
      const log = new AuditLog(sql, now ?? Date.now);
      const stores: StoresTransaction = {
        accounts: new Accounts(sql, now ?? Date.now),
        ledger: new Postings(sql, now),
        audit: {
          write: (event) =>
            log.write(event).catch((error: unknown) => {
              unrecorded = error;
              throw error;
            }),
        },
        sql,
        transaction: (inner) => inner(stores),
      };
      return work(stores);
    });
  } catch (error) {
    if (unrecorded === undefined || error !== unrecorded) throw error;
    const message = `Nothing was done: the audit log cannot be written: ${messageOf(error)}.`;
    throw new StoreError('STORE_UNAVAILABLE', message, { cause: error });
  }
}
