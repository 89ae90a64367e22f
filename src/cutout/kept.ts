import type { QuarterCredits } from '../billing/price.ts';
import type { Answer, ChargedFor, Reservations } from '../billing/reservation.ts';
import type { Box } from '../engine/types.ts';
import type { Encoded } from '../image/encode.ts';
import type { Dimensions } from '../image/types.ts';
import type { Stages } from '../ops/notes.ts';
import { contentKey, keyName } from '../results/keys.ts';
import type { Payment } from '../results/made.ts';
import type { Packed, RedisStoreOptions } from '../results/redisStore.ts';

/** What a first call makes and a repeated one gets again. Shared, never changed. */
export interface Kept extends Encoded, Dimensions {
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
export const paymentOf = (answer: Answer): Payment => ({
  stands: () => answer.stands(),
  deliver: () => answer.deliver(),
  release: () => answer.release(),
});

/** What a kept result occupies: the whole memory behind its bytes. */
export const keptBytes = ({ bytes }: Kept): number => bytes.buffer.byteLength;

/**
 * How results go to other nodes and come from them. One whose charge does not stand in these books, for this account and
 * content (it was given back, or made in other books), is not good any more. Any other is an answer more that may carry the
 * charge.
 */
export function keptTravel(
  reservations: Pick<Reservations, 'answerWith'>,
): Pick<RedisStoreOptions<Kept>, 'pack' | 'unpack'> {
  return {
    pack: ({ bytes, ...facts }): Packed => ({ bytes, facts }),
    unpack: async ({ bytes, facts }, name) => {
      const value = { ...(facts as Omit<Kept, 'bytes'>), bytes };
      const isFor = ({ accountId, content }: ChargedFor) => keyName(contentKey(accountId, content)) === name;
      const answer =
        value.charge === undefined ? undefined : await reservations.answerWith(value.charge, isFor);
      return answer && { value, payment: paymentOf(answer) };
    },
  };
}
