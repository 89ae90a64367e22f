import type { QuarterCredits } from '../billing/price.ts';
import type { Answer, ChargedFor, Reservations } from '../billing/reservation.ts';
import type { Box } from '../engine/types.ts';
import type { Packed, RedisStoreOptions } from '../idempotency/redisStore.ts';
import { contentKey, keyName } from '../idempotency/resultKeys.ts';
import type { ResultPayment } from '../idempotency/sharedResult.ts';
import type { Encoded } from '../image/encode.ts';
import type { Dimensions } from '../image/types.ts';
import type { Stages } from '../ops/telemetry.ts';

/** What a first call makes and a repeated one gets again. Shared, never changed. */
export interface CachedResult extends Encoded, Dimensions {
  /** What `size=full` would give. */
  readonly max: Dimensions;
  /** Box of the subject in the result. */
  readonly foreground: Box;
  /** Kind of subject, in the words of the level asked for; absent when not asked for. */
  readonly type: string | undefined;
  readonly charged: QuarterCredits;
  readonly stages: Stages;
  /** The charge that pays for it; undefined when nothing was charged. */
  readonly charge: number | undefined;
}

/** Made here, where nothing of the request is in reach: what a kept result holds on to stays in memory. */
export const paymentOf = (answer: Answer): ResultPayment => ({
  stands: () => answer.stands(),
  deliver: () => answer.deliver(),
  release: () => answer.release(),
});

/** What a kept result occupies: the whole memory behind its bytes. */
export const cachedResultBytes = ({ bytes }: CachedResult): number => bytes.buffer.byteLength;

/**
 * How results go to other nodes and come from them. One whose charge does not stand in these books, for this account and
 * content (it was given back, or made in other books), is not good any more. Any other is an answer more that may carry the
 * charge.
 */
export function cachedResultCodec(
  reservations: Pick<Reservations, 'answerWith'>,
): Pick<RedisStoreOptions<CachedResult>, 'pack' | 'unpack'> {
  return {
    pack: ({ bytes, ...facts }): Packed => ({ bytes, facts }),
    unpack: async ({ bytes, facts }, name) => {
      const value = { ...(facts as Omit<CachedResult, 'bytes'>), bytes };
      const isFor = ({ accountId, content }: ChargedFor) => keyName(contentKey(accountId, content)) === name;
      const answer =
        value.charge === undefined ? undefined : await reservations.answerWith(value.charge, isFor);
      return answer && { value, payment: paymentOf(answer) };
    },
  };
}
