import { credits, formatCredits } from '../billing/price.ts';
import type { OnceResult } from '../idempotency/idempotency.ts';
import type { Ending } from '../idempotency/sharedResult.ts';
import type { RateLimit, RateState } from '../limits/rate.ts';
import type { RequestTelemetry } from '../ops/telemetry.ts';
import type { CachedResult } from './cachedResult.ts';
import type { ImageFetch } from './fetchImage.ts';

export interface CutoutResult extends Omit<CachedResult, 'charge'> {
  /** True when an earlier answer carried this result, and its charge. */
  readonly replayed: boolean;
  /** What becomes of the answer makes no difference: the charge is final, and another answer reports it. */
  readonly final: boolean;
  /** The account's window after this call. */
  readonly rate: RateState;
  /**
   * To be called once, with what became of the answer. The charge is final as soon as any of an answer was sent; an
   * answer that was not delivered leaves it to the next one to tell of it. Without any answer nothing is charged.
   */
  ended(ending: Ending): Promise<void>;
}

interface AnswerCall {
  readonly accountId: string;
  readonly signal: AbortSignal;
  readonly telemetry: RequestTelemetry;
  /** Ended here. */
  readonly images: ImageFetch;
  readonly admission: { rate: RateLimit['state'] };
}

const nothing = credits(0);

/** Step 7: what one caller is told of a result. Where it rejects, nothing of an answer is sent and the result is given up. */
export async function answer(
  { value, replayed, final, end }: OnceResult<CachedResult>,
  { accountId, signal, telemetry, images, admission }: AnswerCall,
): Promise<CutoutResult> {
  try {
    const rate = await admission.rate(accountId);
    await images.end();
    signal.throwIfAborted();
    const charged = replayed ? nothing : value.charged;
    telemetry.add({ charged: formatCredits(charged), ...(replayed && { replayed }) });
    const { charge: _, ...result } = value;
    return { ...result, charged, replayed, final, rate, ended: end };
  } catch (error) {
    await end('unsent');
    throw error;
  }
}
