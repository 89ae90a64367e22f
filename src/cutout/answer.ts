import { credits, formatCredits } from '../billing/price.ts';
import type { DeliveryOutcome, ResultHandle } from '../idempotency/sharedResult.ts';
import type { RateLimit, RateState } from '../limits/rate.ts';
import type { RequestTelemetry } from '../ops/telemetry.ts';
import { type CachedResult, resultAttributes } from './result.ts';

export interface CutoutResult
  extends Omit<CachedResult, 'charge'>,
    Pick<ResultHandle<CachedResult>, 'replayed' | 'tracksDelivery' | 'end'> {
  /** The account's rate window after this call. */
  readonly rate: RateState;
}

interface AnswerCall {
  readonly accountId: string;
  readonly signal: AbortSignal;
  readonly telemetry: RequestTelemetry;
  /** Releases what the request holds, before its answer is sent. */
  readonly release: () => Promise<void>;
  readonly rate: Pick<RateLimit, 'state'>;
  /** Whether another call made the result. */
  readonly shared: boolean;
}

const nothing = credits(0);

/** Step 7: builds the answer for one caller. If it rejects, nothing is sent and its handle ends `unsent`. */
export async function answer(
  handle: ResultHandle<CachedResult>,
  { accountId, signal, telemetry, release, rate, shared }: AnswerCall,
): Promise<CutoutResult> {
  const { value, replayed, tracksDelivery } = handle;
  const end = (outcome: DeliveryOutcome) => handle.end(outcome);
  try {
    const window = await rate.state(accountId);
    await release();
    signal.throwIfAborted();
    const charged = replayed ? nothing : value.charged;
    telemetry.add({ charged: formatCredits(charged), ...(replayed && { replayed }) });
    if (shared) telemetry.add({ shared, ...resultAttributes(value) });
    const { charge: _, ...result } = value;
    const stages = shared ? result.stages : telemetry.stages;
    return { ...result, stages, charged, replayed, tracksDelivery, rate: window, end };
  } catch (error) {
    await end('unsent');
    throw error;
  }
}
