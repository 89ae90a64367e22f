import type { Tier } from '../billing/price.ts';
import type { Reservation, Reservations, ReserveRequest } from '../billing/types.ts';
import type { Dimensions } from '../image/types.ts';
import type { DurationEstimate, WorkSize } from '../limits/durationEstimate.ts';
import type { FairScheduler } from '../limits/fairScheduler.ts';
import { jobOverdue, overloaded, tooLarge, tooMany } from '../limits/limitErrors.ts';
import type { JobWatch, PixelJobs } from '../limits/pixelJobs.ts';
import { type RateLimit, type RateTicket, rateCost } from '../limits/rate.ts';
import type { RequestTelemetry, Stages } from '../ops/telemetry.ts';
import type { Permit } from './permit.ts';
import { decodedImages, type Plan, type Plans } from './plan.ts';
import { estimateResources, finishedWork, type ResourceEstimate } from './resourceEstimate.ts';

interface AdmissionParts {
  readonly rate: RateLimit;
  readonly reservations: Reservations;
  readonly scheduler: FairScheduler;
  /** Predicts how long work takes; learns from finished work. */
  readonly estimate: DurationEstimate;
  /** Times the work with pixels; absent: nobody does. */
  readonly pixelJobs?: PixelJobs | undefined;
}

export interface AdmissionCall {
  readonly accountId: string;
  /** The permit of the request, which keeps it: taken unless a download has taken it, and not released by `Admitted.end`. */
  readonly permit: Pick<Permit, 'take'>;
  readonly plans: Plans;
  readonly reserve: ReserveRequest;
  /** Downloads and loads what the plan needs. Awaited before a slot is taken, which others could use meanwhile. */
  readonly ready: () => Promise<void>;
  /** `performance.now()` of the deadline; absent: none. */
  readonly deadline?: number | undefined;
  readonly signal: AbortSignal;
  readonly telemetry: RequestTelemetry;
}

/** What was acquired for a plan that is executed. `end` must be called once, whatever happens. */
export interface Admitted {
  /** The plan for the size that the account can pay for. */
  readonly plan: Plan;
  /**
   * Reserves the price (402), once; called when the image is decoded, so that one that cannot be leaves nothing in the ledger.
   * The reserved size is that of `plan`, or a preview if the credits for `auto` were used in the meantime.
   */
  reserve(): Promise<Reservation>;
  /** Times the work with the pixels. From its first call on, `end` returns nothing to the rate: work is paid for. */
  readonly watch: JobWatch;
  /** The plan was executed, with a result of this size, and the reservation settled: `end` releases no credits. */
  done(size: Dimensions): void;
  /** Releases the slot; without `done` before, also what is reserved, and the rate if no work with pixels began. */
  end(): Promise<void>;
}

/** What a request has acquired so far, and how far its work came. */
interface Acquired {
  ticket?: RateTicket;
  reservation?: Reservation;
  releaseSlot?: (done: boolean, waited?: number) => void;
  /** A library began with the pixels; without one nothing is done. */
  begun?: boolean;
  done?: boolean;
}

/** Releases what was acquired: the slot first and always, because others wait for it, the rest as `Admitted.end` says. */
async function release(
  { ticket, reservation, releaseSlot, begun, done = false }: Acquired,
  { stages }: RequestTelemetry,
): Promise<void> {
  // A job that waits for a worker of the engine takes nothing from others.
  releaseSlot?.(done, stages.queue);
  try {
    if (!done) await reservation?.release();
  } finally {
    if (!begun && !done) await ticket?.release();
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
  return { decode: decode + prepare, network: infer + subject, result: matte + compose, encode };
}

/** Step 4: decides whether and when a plan is executed. */
export class Admission {
  readonly #parts: AdmissionParts;

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
  }

  /**
   * Rejects with 429 while an earlier job of the account takes longer than it may. Resolves with what times the work of a
   * request with the account's images, the reading of their headers included.
   */
  async watch(accountId: string): Promise<JobWatch> {
    const { pixelJobs, rate } = this.#parts;
    if (pixelJobs?.isOverdue(accountId)) throw jobOverdue(await rate.state(accountId));
    return pixelJobs?.watch(accountId) ?? (() => () => {});
  }

  /**
   * Checks concurrent requests (429), rate (429) and credits (402), waits until what the plan needs is loaded, then
   * for a slot (503; 400 where no memory would suffice). Writes nothing to the ledger; holds nothing if it rejects.
   */
  async admit(call: AdmissionCall): Promise<Admitted> {
    const acquired: Acquired = {};
    try {
      const watch = await this.watch(call.accountId);
      await call.permit.take();
      acquired.ticket = await this.#takeRate(call);
      const tier = await this.#parts.reservations.quote(call.accountId, call.reserve);
      await call.ready();
      const plan = call.plans[tier];
      const resources = estimateResources(plan);
      acquired.releaseSlot = await this.#takeSlot(call, resources);
      return {
        plan,
        reserve: async () => {
          acquired.reservation ??= await this.#takeCredits(call, tier);
          return acquired.reservation;
        },
        watch: (ms) => {
          acquired.begun = true;
          return watch(ms);
        },
        done: (size) => {
          this.#learn(call.telemetry, plan, finishedWork(plan, resources, size));
          acquired.done = true;
        },
        end: () => release(acquired, call.telemetry),
      };
    } catch (error) {
      await release(acquired, call.telemetry);
      throw error;
    }
  }

  /**
   * Networks that find a subject take a time of their own, and images in doubt take further runs, which their account pays:
   * neither makes others' jobs look longer.
   */
  #learn({ stages, attributes }: RequestTelemetry, { prompt }: Plan, done: WorkSize): void {
    const { runs = 1, second = 'none' } = attributes;
    if (!prompt && runs === 1 && second === 'none') this.#parts.estimate.learn(done, timesOf(stages));
  }

  async #takeRate({ accountId, plans }: AdmissionCall): Promise<RateTicket> {
    const pixels = decodedImages(plans.full).reduce((sum, { probe }) => sum + probe.width * probe.height, 0);
    const taken = await this.#parts.rate.take(accountId, pixels);
    if (taken.outcome === 'taken') return taken.ticket;
    const { limit, remaining } = taken.state;
    const cost = rateCost({ limit }, pixels);
    throw tooMany(
      taken.state,
      `This request counts ${cost} of ${limit} megapixels a minute, ${remaining} are left.`,
    );
  }

  /** Reserves for a result of this size, for which memory is reserved, or for a smaller one. */
  #takeCredits({ accountId, reserve, telemetry }: AdmissionCall, tier: Tier): Promise<Reservation> {
    const request = { ...reserve, size: tier === 'preview' ? tier : reserve.size };
    return telemetry.timed('reserve', () => this.#parts.reservations.reserve(accountId, request));
  }

  /** Waits for a slot of the scheduler, and returns the function that releases it. */
  async #takeSlot(
    call: AdmissionCall,
    resources: ResourceEstimate,
  ): Promise<(done: boolean, waited?: number) => void> {
    const { estimate, scheduler } = this.#parts;
    const { accountId: account, deadline = Number.POSITIVE_INFINITY, signal, telemetry } = call;
    const ms = estimate.milliseconds(resources);
    const heavy = estimate.isHeavy(resources);
    const work = { account, ms, bytes: resources.bytes, heavy, deadline };
    const entered = await telemetry.timed('admission', () => scheduler.acquire(work, signal));
    if (entered.outcome === 'busy') throw overloaded(entered);
    if (entered.outcome === 'too_large') throw tooLarge();
    return entered.release;
  }
}
