import path from 'node:path';
import { Accounts } from '../accounts/accounts.ts';
import { AuditLog } from '../accounts/audit.ts';
import { AccountTable } from '../store/accountTable.ts';
import { AuditTable } from '../store/auditTable.ts';
import { type Database, type FolderLock, lockFolder, openSqlite } from '../store/sqlite.ts';
import { Ledger } from './ledger.ts';
import type { BillingOptions } from './price.ts';

export interface BooksOptions {
  readonly dataDir: string;
  /** The compiled better_sqlite3.node. */
  readonly nativeBinding: string;
  readonly billing: BillingOptions;
  /** Unix milliseconds. */
  readonly now?: () => number;
}

export interface Books {
  readonly accounts: Accounts;
  readonly ledger: Ledger;
  readonly audit: AuditLog;
  readonly database: Database;
  close(): void;
}

export interface ServedBooks extends Books {
  /** What an earlier server left open and this start gave back. */
  readonly recovered: number;
}

const sweepMilliseconds = 30_000;

/** Opens accounts and ledger for one command, beside a running server or without one. Throws StoreError. */
export function openBooks(options: BooksOptions): Books {
  const { dataDir, nativeBinding, billing, now = Date.now } = options;
  const database = openSqlite({ file: path.join(dataDir, 'books.db'), nativeBinding });
  const accounts = new Accounts(new AccountTable(database), now);
  const ledger = new Ledger(database, billing, now);
  return {
    accounts,
    ledger,
    audit: new AuditLog(new AuditTable(database), now),
    database,
    close: () => {
      accounts.flush();
      database.close();
    },
  };
}

/**
 * Opens the books as the one server of the folder: gives back what a server that died left open, then sweeps
 * on a timer that does not keep the process alive. `onError` hears of a sweep that failed; the next one tries
 * again. Throws StoreError, STORE_IN_USE when another server runs on this folder.
 */
export function serveBooks(options: BooksOptions & { onError: (error: unknown) => void }): ServedBooks {
  const lock: FolderLock = lockFolder(options.dataDir, options.nativeBinding);
  let books: Books | undefined;
  try {
    books = openBooks(options);
    const { accounts, ledger, close } = books;
    const recovered = ledger.recover();
    const timer = setInterval(() => {
      try {
        ledger.sweep();
        accounts.flush();
      } catch (error) {
        options.onError(error);
      }
    }, sweepMilliseconds);
    timer.unref();
    return {
      ...books,
      recovered,
      close: () => {
        clearInterval(timer);
        close();
        lock.release();
      },
    };
  } catch (error) {
    books?.close();
    lock.release();
    throw error;
  }
}
