import { insufficientCredits } from '../billing/creditCheck.ts';
import type { Reservation, Reservations, ReserveRequest } from '../billing/reservation.ts';
import type { ConcurrencyLimit } from '../limits/concurrency.ts';
import type { DurationEstimate } from '../limits/durationEstimate.ts';
import type { FairScheduler } from '../limits/fairScheduler.ts';
import { type RateLimit, type RateTicket, rateCost } from '../limits/rate.ts';
import { overloaded, tooLarge, tooMany } from '../limits/refuse.ts';
import type { RequestTelemetry, Stages } from '../ops/telemetry.ts';
import type { Plan, Plans } from './plan.ts';
import { estimateResources, type ResourceEstimate } from './resourceEstimate.ts';

interface AdmissionParts {
  readonly rate: RateLimit;
  readonly concurrency: ConcurrencyLimit;
  readonly reservations: Reservations;
  readonly scheduler: FairScheduler;
  /** Predicts how long work takes; learns from finished work. */
  readonly estimate: DurationEstimate;
}

interface AdmissionCall {
  readonly accountId: string;
  /** It already has a place among the concurrent requests of its account (`takePlace`), and leaves it itself. */
  readonly hasPlace: boolean;
  readonly plans: Plans;
  readonly reserve: ReserveRequest;
  /** `performance.now()` of the deadline; absent: none. */
  readonly deadline?: number | undefined;
  readonly signal: AbortSignal;
  readonly telemetry: RequestTelemetry;
}

/** What was taken for a plan that is executed. `end` must be called once, whatever happens. */
export interface Admitted {
  /** The plan for the reserved size. */
  readonly plan: Plan;
  readonly reservation: Reservation;
  /** The plan was executed, in these stages, and the reservation settled: `end` gives back neither credits nor rate. */
  done(stages: Stages): void;
  /** Leaves the slot and the place. Without `done` before, it also releases the reservation and gives back the rate. */
  end(): Promise<void>;
}

/** Step 4: decides whether and when a plan is executed. */
export interface Admission {
  /**
   * Checks concurrent requests (429), rate (429) and credits (402), then waits for a slot (503). If it rejects, everything
   * that was taken is given back.
   */
  admit(call: AdmissionCall): Promise<Admitted>;
  /** The first check alone: a place among the concurrent requests of the account (429). Resolves with what leaves it. */
  takePlace(accountId: string): Promise<() => Promise<void>>;
}

/** What a request has taken so far. */
interface Taken {
  leavePlace?: () => Promise<void>;
  ticket?: RateTicket;
  reservation?: Reservation;
  leaveSlot?: (done: boolean) => void;
}

/** Gives back what was taken, last first; of work that is done, only slot and place. */
async function end({ leavePlace, ticket, reservation, leaveSlot }: Taken, done: boolean): Promise<void> {
  leaveSlot?.(done);
  try {
    if (!done) await reservation?.release();
  } finally {
    if (!done) await ticket?.giveBack();
    await leavePlace?.();
  }
}

/** Durations by the parts of an estimate. */
function timesOf({
  decode = 0,
  prepare = 0,
  infer = 0,
  subject = 0,
  matte = 0,
  compose = 0,
  encode = 0,
}: Stages) {
  return { source: decode + prepare, network: infer + subject, result: matte + compose + encode };
}

export function createAdmission({
  rate,
  concurrency,
  reservations,
  scheduler,
  estimate,
}: AdmissionParts): Admission {
  async function takePlace(accountId: string): Promise<() => Promise<void>> {
    const leave = await concurrency.enter(accountId);
    if (leave) return leave;
    throw tooMany(
      await rate.state(accountId),
      'Too many requests of this account are in progress. Try again when one is answered.',
      { reason: 'concurrency', retryAfter: 1 },
    );
  }

  async function takeRate({ accountId, plans }: AdmissionCall): Promise<RateTicket> {
    const { width, height } = plans.full.image.probe;
    const pixels = width * height;
    const asked = await rate.take(accountId, pixels);
    if (asked.outcome === 'taken') return asked.ticket;
    const { limit, remaining } = asked.state;
    const cost = rateCost({ megapixels: limit }, pixels);
    throw tooMany(
      asked.state,
      `This request counts ${cost} of ${limit} megapixels a minute, ${remaining} are left.`,
    );
  }

  async function takeCredits({ accountId, reserve, telemetry }: AdmissionCall): Promise<Reservation> {
    const asked = await telemetry.timed('reserve', () => reservations.reserve(accountId, reserve));
    if (asked.outcome === 'reserved') return asked.reservation;
    throw insufficientCredits(asked);
  }

  async function takeSlot(
    call: AdmissionCall,
    resources: ResourceEstimate,
  ): Promise<(done: boolean) => void> {
    const { accountId: account, deadline = Number.POSITIVE_INFINITY, signal, telemetry } = call;
    const ms = estimate.milliseconds(resources);
    const heavy = estimate.isHeavy(ms);
    const asked = { account, ms, bytes: resources.bytes, heavy, deadline };
    const entered = await telemetry.timed('admission', () => scheduler.enter(asked, signal));
    if (entered.outcome === 'busy') throw overloaded(entered);
    if (entered.outcome === 'large') throw tooLarge();
    return entered.leave;
  }

  return {
    takePlace,
    async admit(call) {
      const taken: Taken = {};
      try {
        if (!call.hasPlace) taken.leavePlace = await takePlace(call.accountId);
        taken.ticket = await takeRate(call);
        const reservation = await takeCredits(call);
        taken.reservation = reservation;
        const plan = call.plans[reservation.tier];
        const resources = estimateResources(plan);
        taken.leaveSlot = await takeSlot(call, resources);
        let done = false;
        return {
          plan,
          reservation,
          done(stages) {
            estimate.learn(resources, timesOf(stages));
            done = true;
          },
          end: () => end(taken, done),
        };
      } catch (error) {
        await end(taken, false);
        throw error;
      }
    },
  };
}
