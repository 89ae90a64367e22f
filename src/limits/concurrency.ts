/** How many calls of one account may be under way at a time. */
export interface ConcurrencyLimit {
  /**
   * What to call when the call is over, any number of times, which never rejects; undefined when there is no
   * room.
   */
  enter(account: string): Promise<(() => Promise<void>) | undefined>;
}
