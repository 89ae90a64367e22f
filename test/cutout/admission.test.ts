import test, { type ExecutionContext } from 'ava';
import { insufficientCredits } from '../../src/billing/insufficientCredits.ts';
import { credits } from '../../src/billing/price.ts';
import type { Reservation } from '../../src/billing/types.ts';
import { Admission } from '../../src/cutout/admission.ts';
import { Permit } from '../../src/cutout/permit.ts';
import { makePlans } from '../../src/cutout/plan.ts';
import { profiles } from '../../src/cutout/qualityProfile.ts';
import { plainRequest } from '../../src/cutout/request.ts';
import { InMemoryConcurrencyLimit } from '../../src/limits/concurrency.ts';
import { DurationEstimate } from '../../src/limits/durationEstimate.ts';
import { FairScheduler } from '../../src/limits/fairScheduler.ts';
import { InMemoryRateLimit } from '../../src/limits/inMemoryRate.ts';
import { MemoryBudget } from '../../src/limits/memoryBudget.ts';
import { type RequestAttributes, RequestTelemetry } from '../../src/ops/telemetry.ts';
import { planInputs } from '../support/planInputs.ts';
import { TestClock } from '../support/stores.ts';

const accountId = 'acc_1';

/** Plans for an image of 3 megapixels, full or preview. */
const plans = makePlans(
  { ...plainRequest, source: { kind: 'bytes', bytes: new Uint8Array() }, size: 'auto' },
  planInputs({ width: 2000, height: 1500 }),
  { network: { width: 1024, height: 1024 }, profile: profiles.balanced },
);

/** Size of what work that is done has made. */
const resultSize = { width: 500, height: 500 };

interface Fakes {
  readonly release?: () => Promise<void>;
  readonly insufficient?: boolean;
  readonly memory?: MemoryBudget;
}

/** Admission of one job at a time, one request an account and 10 megapixels a minute. */
function start({ release, insufficient = false, memory = new MemoryBudget() }: Fakes = {}) {
  const clock = new TestClock();
  const rate = new InMemoryRateLimit({ limit: 10, windowSeconds: 60 }, clock);
  const concurrency = new InMemoryConcurrencyLimit(1);
  const scheduler = new FairScheduler({ running: 1, waitMs: 0, memory }, clock.now);
  const estimate = new DurationEstimate();
  let [reserved, released] = [0, 0];
  const reservation: Reservation = {
    id: 1,
    tier: 'preview',
    payment: 'free',
    settle: async () => ({ charged: credits(0), payment: undefined, charge: undefined }),
    isChargeValid: async () => true,
    deliver: async () => {},
    release: async () => {
      released++;
      await release?.();
    },
  };
  const permitFor = (account: string) => new Permit({ rate, concurrency }, account);
  const admission = new Admission({
    rate,
    scheduler,
    estimate,
    reservations: {
      quote: async () => {
        if (insufficient) throw insufficientCredits(credits(1), credits(0));
        return 'preview';
      },
      reserve: async () => {
        reserved++;
        return reservation;
      },
      addAnswer: async () => undefined,
    },
  });
  /** Admits a request with a permit of its own, or with the given one; whose `end` releases that of its own too. */
  const admit = async ({
    signal = new AbortController().signal,
    permit,
    telemetry = new RequestTelemetry(),
  }: {
    signal?: AbortSignal;
    permit?: Permit;
    telemetry?: RequestTelemetry;
  } = {}) => {
    const own = permit ?? permitFor(accountId);
    const over = async () => {
      if (!permit) await own.end();
    };
    try {
      const admitted = await admission.admit({
        accountId,
        permit: own,
        plans,
        reserve: { requestId: 'r1', size: 'auto' },
        ready: async () => {},
        signal,
        telemetry,
      });
      const end = async () => {
        try {
          await admitted.end();
        } finally {
          await over();
        }
      };
      return { ...admitted, end };
    } catch (error) {
      await over();
      throw error;
    }
  };
  /** What is taken now. */
  const taken = async () => {
    const leave = await concurrency.enter(accountId);
    await leave?.();
    return {
      megapixels: 10 - (await rate.state(accountId)).remaining,
      slots: scheduler.stats.running,
      places: leave ? 0 : 1,
      reserved,
      released,
    };
  };
  return { admit, permitFor, taken, estimate };
}

const nothingTaken = { megapixels: 0, slots: 0, places: 0, reserved: 0, released: 0 };

async function holdsEverything(t: ExecutionContext, { taken }: ReturnType<typeof start>): Promise<void> {
  t.deepEqual(await taken(), { megapixels: 3, slots: 1, places: 1, reserved: 1, released: 0 });
}

test('work that is done leaves slot and place, and what it cost stays', async (t) => {
  const started = start();
  const { admit, taken, estimate } = started;
  const telemetry = new RequestTelemetry();
  const admitted = await admit({ telemetry });
  t.is((await taken()).reserved, 0, 'nothing is written before the image is decoded');
  await admitted.reserve();
  await admitted.reserve();
  await holdsEverything(t, started);
  t.is(admitted.plan, plans.preview, 'as reserved');
  const work = {
    decoded: [{ megapixels: 2, coding: 'jpeg source' }],
    network: 1,
    result: 0.25,
    encoding: 'png',
  } as const;
  const before = estimate.milliseconds(work);
  telemetry.ended({ decode: 5000, infer: 50_000, matte: 5000 });
  admitted.done(resultSize);
  t.true(estimate.milliseconds(work) > before, 'the estimate has learnt');
  await holdsEverything(t, started);
  await admitted.end();
  t.deepEqual(await taken(), { ...nothingTaken, reserved: 1, megapixels: 3 });
});

test('an image that leaves a network in doubt does not make the jobs of others look longer', async (t) => {
  const { admit, estimate } = start();
  const work = { decoded: [], network: 1, result: 0.25, encoding: 'png' } as const;
  const before = estimate.milliseconds(work);
  const learn = async (attributes: RequestAttributes) => {
    const telemetry = new RequestTelemetry();
    telemetry.add(attributes);
    const admitted = await admit({ telemetry });
    telemetry.ended({ infer: 50_000 });
    admitted.done(resultSize);
    await admitted.end();
    return estimate.milliseconds(work) > before;
  };
  t.false(await learn({ runs: 2, second: 'none' }));
  t.false(await learn({ runs: 1, second: 'taken' }));
  t.true(await learn({ runs: 1, second: 'none' }));
});

test('work that is not done gives everything back', async (t) => {
  const started = start();
  const { admit, taken } = started;
  const admitted = await admit();
  await admitted.reserve();
  await holdsEverything(t, started);
  await admitted.end();
  t.deepEqual(await taken(), { ...nothingTaken, reserved: 1, released: 1 });
  const undecoded = await admit();
  await undecoded.end();
  t.deepEqual(await taken(), { ...nothingTaken, reserved: 1, released: 1 });
  const again = await admit();
  again.done(resultSize);
  await again.end();
});

test('everything else is given back where the reservation cannot be released', async (t) => {
  const { admit, taken } = start({ release: () => Promise.reject(new Error('no ledger')) });
  const admitted = await admit();
  await admitted.reserve();
  await t.throwsAsync(admitted.end(), { message: 'no ledger' });
  t.deepEqual(await taken(), { ...nothingTaken, reserved: 1, released: 1 });
});

test('a refusal gives back what was taken before it', async (t) => {
  const poor = start({ insufficient: true });
  await t.throwsAsync(poor.admit(), { code: 'insufficient_credits' });
  t.deepEqual(await poor.taken(), nothingTaken);

  // As much as bodies may take: none is left for work.
  const memory = new MemoryBudget();
  memory.bound({ room: 100e6, largestWork: 0 });
  const small = start({ memory });
  const tooLarge = await t.throwsAsync(small.admit(), { code: 'resolution_too_high' });
  t.like(tooLarge, { status: 400, retryAfter: undefined, reported: false });
  t.deepEqual(await small.taken(), nothingTaken);

  const left = start();
  const signal = AbortSignal.abort(new Error('gone'));
  await t.throwsAsync(left.admit({ signal }), { message: 'gone' });
  t.deepEqual(await left.taken(), nothingTaken);
});

test('the rate is not asked without a place, nor the ledger without the rate', async (t) => {
  const { admit, taken } = start();
  const first = await admit();
  const refused = await t.throwsAsync(admit(), { code: 'rate_limit_exceeded' });
  t.like(refused, { reason: 'concurrency', window: { remaining: 7 } });
  first.done(resultSize);
  await first.end();
  for (let i = 0; i < 2; i++) {
    const next = await admit();
    next.done(resultSize);
    await next.end();
  }
  const late = await t.throwsAsync(admit(), { code: 'rate_limit_exceeded' });
  t.like(late, { reason: 'rate', window: { remaining: 1 } });
  t.deepEqual(await taken(), { ...nothingTaken, megapixels: 9 });
});

test('a request that has its permit already takes no other, and keeps it until it ends', async (t) => {
  const { admit, permitFor, taken } = start();
  const permit = permitFor(accountId);
  await permit.take();
  const admitted = await admit({ permit });
  await admitted.end();
  t.like(await taken(), { places: 1, slots: 0 });
  await permit.end();
  t.like(await taken(), { places: 0 });
});

test('a permit is kept while work that others share goes on after its request', async (t) => {
  const { admit, permitFor, taken } = start();
  const permit = permitFor(accountId);
  const admitted = await admit({ permit });
  const release = permit.retain();
  await permit.end();
  await permit.end();
  t.like(await taken(), { places: 1 });
  await admitted.end();
  await release();
  t.like(await taken(), { places: 0 });
});

test('the rate is paid once work with the pixels has begun, whatever comes of it; credits are not', async (t) => {
  const { admit, taken } = start();
  const admitted = await admit();
  admitted.watch(1000)();
  await admitted.reserve();
  await admitted.end();
  t.deepEqual(await taken(), { ...nothingTaken, reserved: 1, released: 1, megapixels: 3 });
});
