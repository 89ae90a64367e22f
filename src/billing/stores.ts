import { randomUUID } from 'node:crypto';
import { Accounts } from '../accounts/accounts.ts';
import { AuditLog } from '../accounts/audit.ts';
import type { Database } from '../store/database.ts';
import { NodeTable } from '../store/nodeTable.ts';
import { openStore, type StoreOptions, watchDatabase } from '../store/open.ts';
import { lockFolder } from '../store/sqlite.ts';
import { Ledger, type LedgerOptions } from './ledger.ts';
import type { BillingOptions } from './price.ts';
import { Sweep } from './sweep.ts';
import { type Transactional, transaction } from './transaction.ts';

interface StoresOptions extends StoreOptions {
  readonly billing: BillingOptions;
  /** Replaces the clocks of this machine and of the database; Unix milliseconds. */
  readonly now?: () => number;
}

interface ServeStoresOptions extends StoresOptions {
  /** Receives the error of a failed sweep, which the next one repeats, and of an end that failed permanently. */
  readonly onError: (error: unknown) => void;
  /** Milliseconds after its last heartbeat at which a server counts as dead. */
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
  /** Number of answers of earlier servers that this start released. */
  readonly recovered: number;
  /** False while the database refuses calls, and within half a lease where nobody calls it or it does not answer. */
  isReachable(): boolean;
}

/** Milliseconds of a lease. Its heartbeat comes every quarter of it, so what a dead node left is released within 25 s. */
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
    audit: new AuditLog(database, now ?? Date.now),
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

/** Opens accounts and ledger for one command, with or without a running server. Rejects with StoreError. */
export async function openStores(options: StoresOptions): Promise<Stores> {
  return storesOn(await openStore(options), options);
}

/**
 * Opens the stores for a server and sweeps them until `close`, on a timer that does not keep the process alive:
 * releases what dead servers left and what has expired. SQLite allows one server per folder (STORE_IN_USE),
 * PostgreSQL any number, which know of each other by leases. Rejects with StoreError.
 */
export async function serveStores(options: ServeStoresOptions): Promise<ServedStores> {
  const { dataDir, databaseUrl, leaseMs = standardLeaseMs, onError } = options;
  const lock = databaseUrl === undefined ? lockFolder(dataDir) : undefined;
  let database: Database | undefined;
  try {
    database = await openStore(options);
    const nodes = new NodeTable(database);
    // The lock of the folder guarantees that no other server is alive.
    if (lock) await nodes.removeAll();
    const node = randomUUID();
    let onUnavailable = () => {};
    const watched = watchDatabase(database, () => onUnavailable());
    const stores = storesOn(watched, options, { node, onError });
    const { accounts, ledger } = stores;
    const renewLease = () => nodes.heartbeat(node, leaseMs);
    await renewLease();
    const recovered = await ledger.recover();

    const sweep = new Sweep({ renewLease, ledger, accounts, everyMs: leaseMs / 4, onError });
    onUnavailable = () => sweep.soon();
    return {
      ...stores,
      recovered,
      isReachable: () => sweep.isReachable,
      close: async () => {
        await sweep.stop();
        // Deliveries that waited for the database: without them, answers that were sent would be refunded.
        await ledger.sweep().catch(onError);
        // What is still open now is released by another node's next sweep or by the next start.
        await nodes.remove(node).catch(onError);
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
