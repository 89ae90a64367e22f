import { credits } from '../billing/price.ts';
import type { Reservations } from '../billing/reservation.ts';

const nothing = credits(0);

/** For work that nobody pays for: whoever runs the program on their own files. */
export const freeReservations: Reservations = {
  reserve: async (_accountId, { size }) => ({
    outcome: 'reserved',
    reservation: {
      id: 0,
      tier: size === 'auto' ? 'full' : size,
      payment: 'free',
      charge: nothing,
      settle: async () => nothing,
      delivered: async () => {},
      release: async () => {},
    },
  }),
};
