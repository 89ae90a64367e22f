import type { NodeTable } from '../store/nodeTable.ts';

/**
 * The sign of life of one server among several. Who does not renew its lease is struck off, and what it left open is
 * ended by the others. After a time in which the database could not be reached nobody's lease is good: so whoever
 * finds its own run out, or is new, leaves the others a whole lease to renew theirs before it strikes anybody off.
 */
export class Lease {
  readonly #nodes: NodeTable;
  readonly #id: string;
  readonly #leaseMs: number;
  /** On the clock of `performance.now`. */
  #strikesFrom = 0;

  constructor(nodes: NodeTable, id: string, leaseMs: number) {
    this.#nodes = nodes;
    this.#id = id;
    this.#leaseMs = leaseMs;
  }

  async renew(): Promise<void> {
    const unbroken = await this.#nodes.renew(this.#id, this.#leaseMs);
    if (!unbroken) this.#strikesFrom = performance.now() + this.#leaseMs;
    if (performance.now() >= this.#strikesFrom) await this.#nodes.strike();
  }

  /** Says goodbye. */
  async end(): Promise<void> {
    await this.#nodes.remove(this.#id);
  }
}
