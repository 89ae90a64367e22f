import type { NodeTable } from '../store/nodeTable.ts';

/**
 * Heartbeat of one server among several. A server that does not renew its lease is removed, and others release
 * the answers it left. After an outage of the database all leases have expired; therefore a server whose own
 * lease has expired, or which is new, waits for a whole lease before it removes others.
 */
export class ServerLease {
  readonly #nodes: NodeTable;
  readonly #id: string;
  readonly #leaseMs: number;
  /** When others may be removed, on the clock of `performance.now`. */
  #mayRemoveOthersFrom = 0;

  constructor(nodes: NodeTable, id: string, leaseMs: number) {
    this.#nodes = nodes;
    this.#id = id;
    this.#leaseMs = leaseMs;
  }

  async renew(): Promise<void> {
    const unbroken = await this.#nodes.renew(this.#id, this.#leaseMs);
    if (!unbroken) this.#mayRemoveOthersFrom = performance.now() + this.#leaseMs;
    if (performance.now() >= this.#mayRemoveOthersFrom) await this.#nodes.removeExpired(this.#leaseMs);
  }

  /** Removes the lease at shutdown. */
  async end(): Promise<void> {
    await this.#nodes.remove(this.#id);
  }
}
