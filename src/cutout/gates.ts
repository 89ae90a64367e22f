import { formatCredits } from '../billing/price.ts';
import type { Reservation, Reservations, ReserveRequest } from '../billing/reservation.ts';
import { fail } from '../errors.ts';
import type { Admission } from '../limits/admission.ts';
import type { ConcurrencyLimit } from '../limits/concurrency.ts';
import type { RateLimit, RateState, RateTicket } from '../limits/rate.ts';
import { tooMany } from '../limits/refuse.ts';

export interface GateParts {
  readonly rate: RateLimit;
  readonly concurrency: ConcurrencyLimit;
  readonly reservations: Reservations;
  readonly admission: Admission;
}

export interface GateCall {
  readonly accountId: string;
  /** Of the upright input. */
  readonly pixels: number;
  readonly reserve: ReserveRequest;
  readonly signal: AbortSignal;
}

/** What lies between a picture whose header is known and the work on it. */
export interface Gates {
  /**
   * Passes one gate after the other and runs `work`: calls at a time (429), rate (429), credits (402), a turn
   * (503). Whatever fails, in a gate or in the work, gives back all that was taken. `work` settles the
   * reservation as its last step.
   */
  pass<T>(call: GateCall, work: (reservation: Reservation) => Promise<T>): Promise<T>;
  rate(accountId: string): RateState;
}

export function createGates({ rate, concurrency, reservations, admission }: GateParts): Gates {
  function enter({ accountId }: GateCall): () => void {
    const leave = concurrency.enter(accountId);
    if (leave) return leave;
    throw tooMany(
      rate.state(accountId),
      'Too many requests of this account are under way. Try again when one is answered.',
      1,
    );
  }

  function take({ accountId, pixels }: GateCall): RateTicket {
    const asked = rate.take(accountId, pixels);
    if (asked.outcome === 'taken') return asked.ticket;
    const { limit, remaining } = asked.state;
    const cost = Math.max(1, Math.ceil(pixels / 1e6));
    throw tooMany(
      asked.state,
      `This request counts ${cost} of ${limit} megapixels a minute, ${remaining} are left.`,
    );
  }

  async function reserve({ accountId, reserve: request }: GateCall): Promise<Reservation> {
    const asked = await reservations.reserve(accountId, request);
    if (asked.outcome === 'reserved') return asked.reservation;
    const needed = formatCredits(asked.needed);
    throw fail('insufficient_credits', {
      detail: `This request needs ${needed} ${needed === '1' ? 'credit' : 'credits'}, the balance is ${formatCredits(asked.balance)}.`,
    });
  }

  async function admit({ signal }: GateCall): Promise<() => void> {
    const entered = await admission.enter(signal);
    if (entered.outcome === 'admitted') return entered.leave;
    throw fail('service_unavailable', {
      detail: 'Too many requests are waiting. Try again.',
      headers: { 'Retry-After': String(entered.retryAfter) },
    });
  }

  return {
    rate: (accountId) => rate.state(accountId),
    async pass(call, work) {
      const leaveAccount = enter(call);
      try {
        const ticket = take(call);
        try {
          const reservation = await reserve(call);
          try {
            const leave = await admit(call);
            return await work(reservation).finally(leave);
          } catch (error) {
            await reservation.release();
            throw error;
          }
        } catch (error) {
          ticket.giveBack();
          throw error;
        }
      } finally {
        leaveAccount();
      }
    },
  };
}
