import type { ChargedFor } from './chargedContent.ts';
import { textHash } from './hash.ts';
import type { Packed, RedisStoreOptions } from './redisStore.ts';
import { contentKey } from './resultStore.ts';
import type { ChargeHandle } from './sharedResult.ts';

/** What every cached value has. */
export interface Cacheable {
  readonly bytes: Buffer;
  /** Number of the charge that pays for it; undefined when nothing was charged. */
  readonly charge: number | undefined;
}

/** Bytes of memory that a cached value holds: the whole buffer behind its bytes. */
export const cachedResultBytes = ({ bytes }: Cacheable): number => bytes.buffer.byteLength;

/** What the ledger offers for charges of other processes (`Reservations.addAnswer`). */
interface Charges {
  addAnswer(charge: number, isFor: (paid: ChargedFor) => boolean): Promise<ChargeHandle | undefined>;
}

/**
 * The stored form of values for other nodes. A value is valid if its charge is valid in this ledger, for this account and
 * content; it is not if the charge was refunded or belongs to another ledger. Each value that is read becomes one more
 * answer that may carry the charge.
 */
export function cachedResultCodec<T extends Cacheable>(
  charges: Charges,
): Pick<RedisStoreOptions<T>, 'pack' | 'unpack'> {
  return {
    pack: ({ bytes, ...facts }): Packed => ({ bytes, facts }),
    unpack: async ({ bytes, facts }, name) => {
      const value = { ...(facts as Omit<T, 'bytes'>), bytes } as T;
      const isFor = ({ accountId, content }: ChargedFor) => textHash(contentKey(accountId, content)) === name;
      const chargeHandle =
        value.charge === undefined ? undefined : await charges.addAnswer(value.charge, isFor);
      return chargeHandle && { value, chargeHandle };
    },
  };
}
