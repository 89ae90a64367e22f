import type { Keyv } from 'keyv';
import type { Session } from '../accounts/sessions.ts';
import type { CachedResult } from '../cutout/cachedResult.ts';
import type { Idempotency } from '../idempotency/idempotency.ts';
import type { Attempts } from '../limits/attempts.ts';
import type { ConcurrencyLimit } from '../limits/concurrency.ts';
import type { RateLimit } from '../limits/rate.ts';

/** State that nodes share beside the database: limits, cached results and sessions. In memory for a single node. */
export interface SharedState {
  readonly rate: RateLimit;
  readonly concurrency: ConcurrencyLimit;
  readonly attempts: Attempts;
  readonly idempotency: Idempotency<CachedResult>;
  readonly sessions: Keyv<Session>;
  /** Failed downloads by account. */
  readonly fetchFailures: Attempts;
  /** Addresses that passed the precheck (src/cutout/precheck.ts), while results are kept. */
  readonly permitted: Keyv<boolean> | undefined;
  /** False while Redis cannot be reached or refuses writes, without which no image is processed. */
  isReachable(): boolean;
  close(): void;
}
