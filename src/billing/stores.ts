import { randomUUID } from 'node:crypto';
import { Accounts } from '../accounts/accounts.ts';
import { AuditLog } from '../accounts/audit.ts';
import { AuditTable } from '../store/auditTable.ts';
import type { Database } from '../store/database.ts';
import { isUnavailable } from '../store/error.ts';
import { NodeTable } from '../store/nodeTable.ts';
import { openStore, type StoreOptions } from '../store/open.ts';
import { type FolderLock, lockFolder } from '../store/sqlite.ts';
import { Lease } from './lease.ts';
import { Ledger, type LedgerOptions } from './ledger.ts';
import type { BillingOptions } from './price.ts';
import { type Transactional, transaction } from './transaction.ts';

export interface StoresOptions extends StoreOptions {
  readonly billing: BillingOptions;
  /** In place of the clock of this machine and of the database; Unix milliseconds. */
  readonly now?: () => number;
}

export interface ServeStoresOptions extends StoresOptions {
  /** Hears of a sweep that failed, which the next one does again, and of an end that failed for good. */
  readonly onError: (error: unknown) => void;
  /** How long after its last sign of life a server counts as dead. */
  readonly leaseMs?: number;
}

export interface Stores extends Transactional {
  readonly accounts: Accounts;
  readonly ledger: Ledger;
  readonly audit: AuditLog;
  readonly database: Database;
  close(): Promise<void>;
}

export interface ServedStores extends Stores {
  /** What an earlier server left open and this start gave back. */
  readonly recovered: number;
}

/** With a sign of life every quarter of it, what a dead node left is free again within 25 s. */
const standardLeaseMs = 20_000;

function storesOn(
  database: Database,
  { billing, now }: StoresOptions,
  server: Pick<LedgerOptions, 'node' | 'onError'> = {},
): Stores {
  const accounts = new Accounts(database, now ?? Date.now);
  return {
    accounts,
    ledger: new Ledger(database, { billing, now, ...server }),
    audit: new AuditLog(new AuditTable(database), now ?? Date.now),
    database,
    transaction: (work) => transaction(database, now, work),
    close: async () => {
      try {
        await accounts.flush();
      } finally {
        await database.close();
      }
    },
  };
}

/** Opens accounts and ledger for one command, beside a running server or without one. Rejects with StoreError. */
export async function openStores(options: StoresOptions): Promise<Stores> {
  return storesOn(await openStore(options), options);
}

/**
 * Opens the books for a server, and until `close` sweeps them on a timer that does not keep the process alive: gives
 * back what servers left open that died, and what ran out. SQLite has one server a folder (STORE_IN_USE); on PostgreSQL
 * any number, which know of each other by their leases. Rejects with StoreError.
 */
export async function serveStores(options: ServeStoresOptions): Promise<ServedStores> {
  const { dataDir, databaseUrl, leaseMs = standardLeaseMs, onError } = options;
  const lock: FolderLock | undefined = databaseUrl === undefined ? lockFolder(dataDir) : undefined;
  let database: Database | undefined;
  try {
    database = await openStore(options);
    const nodes = new NodeTable(database);
    // Nobody else can be alive on a folder that is ours.
    if (lock) await nodes.removeAll();
    const node = randomUUID();
    const stores = storesOn(database, options, { node, onError });
    const { accounts, ledger } = stores;
    const lease = new Lease(nodes, node, leaseMs);
    await lease.renew();
    const recovered = await ledger.recover();

    let sweeping: Promise<void> | undefined;
    const steps = [
      () => lease.renew(),
      () => ledger.sweep(),
      () => ledger.recover(),
      () => accounts.flush(),
    ] as const;
    // While the database is away all of them wait for it; what fails otherwise holds up no other.
    const sweep = async () => {
      for (const step of steps) {
        try {
          await step();
        } catch (error) {
          onError(error);
          if (isUnavailable(error)) return;
        }
      }
    };
    const timer = setInterval(() => {
      sweeping ??= sweep().finally(() => {
        sweeping = undefined;
      });
    }, leaseMs / 4);
    timer.unref();
    return {
      ...stores,
      recovered,
      close: async () => {
        clearInterval(timer);
        await sweeping;
        // What is still open now is ended by another node's next sweep or by the next start.
        await lease.end().catch(onError);
        await stores.close().catch(onError);
        lock?.release();
      },
    };
  } catch (error) {
    await database?.close();
    lock?.release();
    throw error;
  }
}
