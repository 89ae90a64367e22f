import type { QuarterCredits } from '../billing/price.ts';
import type { Reservation, Reservations } from '../billing/reservation.ts';
import type { Box } from '../engine/types.ts';
import type { Encoded } from '../image/encode.ts';
import type { Dimensions } from '../image/types.ts';
import type { Stages } from '../ops/notes.ts';
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
  readonly reservationId: number;
  /** Makes the charge final; until then a crash gives it back. Only the first call does anything. */
  conclude(): Promise<void>;
}

/** Made here, where nothing of the request is in reach: what a kept result holds on to stays in memory. */
export function concludeOnce(reservation: Reservation): Kept['conclude'] {
  let done: Promise<void> | undefined;
  return () => {
    done ??= reservation.delivered();
    return done;
  };
}

/** What a kept result occupies: the whole memory behind its bytes. */
export const keptBytes = ({ bytes }: Kept): number => bytes.buffer.byteLength;

/**
 * How results go to other nodes and come from them. One whose charge was given back, as its node died before the
 * answer was out, is not good any more; any other is charged for good as soon as another node takes it up.
 */
export function keptTravel(
  reservations: Pick<Reservations, 'delivered'>,
): Pick<RedisStoreOptions<Kept>, 'pack' | 'unpack'> {
  return {
    pack: ({ bytes, conclude: _, ...facts }): Packed => ({ bytes, facts }),
    unpack: async ({ bytes, facts }) => {
      const kept = { ...(facts as Omit<Kept, 'bytes' | 'conclude'>), bytes };
      const stands = await reservations.delivered(kept.reservationId);
      return stands ? { ...kept, conclude: async () => {} } : undefined;
    },
  };
}
