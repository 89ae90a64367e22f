import { insufficientCredits } from '../billing/creditCheck.ts';
import type { Reservation, Reservations, ReserveRequest } from '../billing/reservation.ts';
import { fail } from '../errors.ts';
import type { ConcurrencyLimit } from '../limits/concurrency.ts';
import type { DurationEstimate } from '../limits/durationEstimate.ts';
import type { FairScheduler } from '../limits/fairScheduler.ts';
import { type RateLimit, type RateState, type RateTicket, rateCost } from '../limits/rate.ts';
import { overloaded, tooMany } from '../limits/refuse.ts';
import type { RequestTelemetry, Stages } from '../ops/telemetry.ts';
import type { Plan, Plans } from './plan.ts';
import { estimateResources } from './resourceEstimate.ts';

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
  /** It already has a place among the concurrent requests of its account (`Admission.enter`), and leaves it itself. */
  readonly entered: boolean;
  readonly plans: Plans;
  readonly reserve: ReserveRequest;
  /** `performance.now()` of the deadline; absent: none. */
  readonly deadline?: number | undefined;
  readonly signal: AbortSignal;
  readonly telemetry: RequestTelemetry;
}

/** Durations of the stages of the work. */
interface Timed {
  readonly stages: Stages;
}

/** Step 4: decides whether and when a plan is executed. */
export interface Admission {
  /**
   * Checks concurrent requests (429), rate (429) and credits (402), waits for a slot (503), then runs `work` with the plan
   * for the reserved size. `work` settles the reservation as its last step. If a check or the work fails, everything that
   * was taken is given back.
   */
  admit<T extends Timed>(
    call: AdmissionCall,
    work: (plan: Plan, reservation: Reservation) => Promise<T>,
  ): Promise<T>;
  rate(accountId: string): Promise<RateState>;
  /** The first check alone: a place among the concurrent requests of the account (429). Resolves with what leaves it. */
  enter(accountId: string): Promise<() => Promise<void>>;
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
  async function enter(accountId: string): Promise<() => Promise<void>> {
    const leave = await concurrency.enter(accountId);
    if (leave) return leave;
    throw tooMany(
      await rate.state(accountId),
      'Too many requests of this account are in progress. Try again when one is answered.',
      { reason: 'concurrency', retryAfter: 1 },
    );
  }

  async function take({ accountId, plans }: AdmissionCall): Promise<RateTicket> {
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

  async function reserve({ accountId, reserve: request, telemetry }: AdmissionCall): Promise<Reservation> {
    const asked = await telemetry.timed('reserve', () => reservations.reserve(accountId, request));
    if (asked.outcome === 'reserved') return asked.reservation;
    throw insufficientCredits(asked);
  }

  /** Waits for a slot, then works; later estimates learn from how long that took. */
  async function inSlot<T extends Timed>(
    call: AdmissionCall,
    plan: Plan,
    work: () => Promise<T>,
  ): Promise<T> {
    const { accountId: account, deadline = Number.POSITIVE_INFINITY, signal, telemetry } = call;
    const resources = estimateResources(plan);
    const ms = estimate.milliseconds(resources);
    const heavy = estimate.isHeavy(ms);
    const asked = { account, ms, bytes: resources.bytes, heavy, deadline };
    const entered = await telemetry.timed('admission', () => scheduler.enter(asked, signal));
    if (entered.outcome === 'busy') throw overloaded(entered);
    if (entered.outcome === 'large')
      throw fail('service_unavailable', {
        reason: 'memory',
        detail: 'This image needs more memory than the server may use. Send a smaller one.',
        retryAfter: 60,
      });
    let done = false;
    try {
      const result = await work();
      estimate.learn(resources, timesOf(result.stages));
      done = true;
      return result;
    } finally {
      entered.leave(done);
    }
  }

  return {
    rate: (accountId) => rate.state(accountId),
    enter,
    async admit(call, work) {
      const leaveAccount = call.entered ? undefined : await enter(call.accountId);
      try {
        const ticket = await take(call);
        try {
          const reservation = await reserve(call);
          try {
            const plan = call.plans[reservation.tier];
            return await inSlot(call, plan, () => work(plan, reservation));
          } catch (error) {
            await reservation.release();
            throw error;
          }
        } catch (error) {
          await ticket.giveBack();
          throw error;
        }
      } finally {
        await leaveAccount?.();
      }
    },
  };
}
