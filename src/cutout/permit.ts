import type { ConcurrencyLimit } from '../limits/concurrency.ts';
import { tooMany } from '../limits/limitErrors.ts';
import type { RateLimit } from '../limits/rate.ts';
import { retained } from '../limits/retained.ts';
import { retrySeconds } from '../limits/retryAfter.ts';

export interface PermitParts {
  readonly concurrency: ConcurrencyLimit;
  /** Says what the 429 reports of the account's window. */
  readonly rate: Pick<RateLimit, 'state'>;
}

/**
 * The permit of one among the concurrent requests of an account. What needs it first takes it: a download (step 1) or
 * the admission of the work (step 4). It is held until `end` was called and everything retained is released.
 */
export class Permit {
  readonly #parts: PermitParts;
  readonly #accountId: string;
  #leave: (() => Promise<void>) | undefined;
  readonly #retained = retained(async () => {
    const leave = this.#leave;
    this.#leave = undefined;
    await leave?.();
  });

  constructor(parts: PermitParts, accountId: string) {
    this.#parts = parts;
    this.#accountId = accountId;
  }

  /** Takes the permit, unless the request holds it already. Rejects with 429 while the account has too many requests. */
  async take(): Promise<void> {
    if (this.#leave) return;
    const { concurrency, rate } = this.#parts;
    this.#leave = await concurrency.enter(this.#accountId);
    if (this.#leave) return;
    throw tooMany(
      await rate.state(this.#accountId),
      'Too many requests of this account are in progress. Try again when one is answered.',
      { reason: 'concurrency', retryAfter: retrySeconds.concurrency },
    );
  }

  /** The permit is held until the returned function is called, even if the request ends before. */
  readonly retain = this.#retained.retain;

  /** The request is over. Only the first call counts. Never rejects. */
  readonly end = this.#retained.end;
}
