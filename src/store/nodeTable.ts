import type { Sql } from './database.ts';

/**
 * Rows of `node`: the live servers and their leases. All times are the database's own. A server that does not renew its lease is
 * removed, and others release the answers it left.
 */
export class NodeTable {
  readonly #sql: Sql;
  /** When this server may remove others, on the clock of `performance.now`. */
  #mayRemoveOthersFrom = 0;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /**
   * Renews this server's lease and removes servers whose lease has expired. After an outage of the database all leases have
   * expired; therefore a server whose own lease has expired, or which is new, waits for a whole lease before it removes others.
   */
  async heartbeat(id: string, leaseMs: number): Promise<void> {
    const unbroken = await this.renew(id, leaseMs);
    if (!unbroken) this.#mayRemoveOthersFrom = performance.now() + leaseMs;
    if (performance.now() >= this.#mayRemoveOthersFrom) await this.removeExpired(leaseMs);
  }

  /** Extends the lease to `leaseMs` milliseconds from now. False if it had expired or never existed. */
  renew(id: string, leaseMs: number): Promise<boolean> {
    const { clock } = this.#sql.dialect;
    return this.#sql.transaction(async (sql) => {
      const renewed = await sql.run(
        `UPDATE node SET expires_at = ${clock} + @leaseMs WHERE id = @id AND expires_at > ${clock}`,
        { id, leaseMs },
      );
      if (renewed === 1) return true;
      await sql.run(
        `INSERT INTO node (id, started_at, expires_at) VALUES (@id, ${clock}, ${clock} + @leaseMs)
         ON CONFLICT (id) DO UPDATE SET expires_at = ${clock} + @leaseMs`,
        { id, leaseMs },
      );
      return false;
    });
  }

  /** Removes nodes whose lease has expired. One that ends later than `leaseMs` from now, as before the clock was set back, ends then. */
  async removeExpired(leaseMs: number): Promise<void> {
    const { clock } = this.#sql.dialect;
    await this.#sql.run(`DELETE FROM node WHERE expires_at <= ${clock}`);
    await this.#sql.run(
      `UPDATE node SET expires_at = ${clock} + @leaseMs WHERE expires_at > ${clock} + @leaseMs`,
      { leaseMs },
    );
  }

  async remove(id: string): Promise<void> {
    await this.#sql.run('DELETE FROM node WHERE id = @id', { id });
  }

  async removeAll(): Promise<void> {
    await this.#sql.run('DELETE FROM node');
  }
}
