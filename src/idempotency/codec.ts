import type { ChargedFor } from './chargedContent.ts';
import type { Packed, RedisStoreOptions } from './redisStore.ts';
import { contentKey, keyName } from './resultKeys.ts';
import { paymentOf, type ResultPayment } from './sharedResult.ts';

/** What a value must tell of itself to be cached. */
export interface Cacheable {
  readonly bytes: Buffer;
  /** Number of the charge that pays for it; undefined when nothing was charged. */
  readonly charge: number | undefined;
}

/** Memory that a cached value occupies, in bytes: all that lies behind its own. */
export const cachedResultBytes = ({ bytes }: Cacheable): number => bytes.buffer.byteLength;

/** Of the books: one more answer with a charge that another process made (`Reservations.answerWith`). */
export interface Charges {
  answerWith(charge: number, isFor: (paid: ChargedFor) => boolean): Promise<ResultPayment | undefined>;
}

/**
 * How values go to other nodes and come from them. One whose charge does not stand in these books, for this account and
 * content (it was given back, or made in other books), is not good any more. Any other is one more answer that may carry
 * the charge.
 */
export function cachedResultCodec<T extends Cacheable>(
  charges: Charges,
): Pick<RedisStoreOptions<T>, 'pack' | 'unpack'> {
  return {
    pack: ({ bytes, ...facts }): Packed => ({ bytes, facts }),
    unpack: async ({ bytes, facts }, name) => {
      const value = { ...(facts as Omit<T, 'bytes'>), bytes } as T;
      const isFor = ({ accountId, content }: ChargedFor) => keyName(contentKey(accountId, content)) === name;
      const answer = value.charge === undefined ? undefined : await charges.answerWith(value.charge, isFor);
      return answer && { value, payment: paymentOf(answer) };
    },
  };
}
