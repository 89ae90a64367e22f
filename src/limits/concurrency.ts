/** Bounds the concurrent calls of one account. */
export interface ConcurrencyLimit {
  /**
   * Returns a function to call when the call is over (idempotent, never rejects); undefined if the limit is
   * reached.
   */
  enter(account: string): Promise<(() => Promise<void>) | undefined>;
}
