import { setImmediate as turn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { credits } from '../../src/billing/price.ts';
import type { ServedStores } from '../../src/billing/stores.ts';
import type { Reservations } from '../../src/billing/types.ts';
import type { CutoutResult } from '../../src/cutout/answer.ts';
import type { Cutout } from '../../src/cutout/cutout.ts';
import type { CachedResult } from '../../src/cutout/result.ts';
import { fail } from '../../src/errors.ts';
import { cachedResultBytes } from '../../src/idempotency/codec.ts';
import type { Idempotency } from '../../src/idempotency/idempotency.ts';
import { InMemoryResultStore } from '../../src/idempotency/inMemoryStore.ts';
import { RequestTelemetry } from '../../src/ops/telemetry.ts';
import { eventually } from '../fixtures/service.ts';
import { randomSteps } from '../support/randomSteps.ts';
import {
  requestOf,
  runNumberOf,
  type Run as ScriptedRun,
  scriptedCutout,
} from '../support/scriptedCutout.ts';
import { TestClock, testFolder, testServer, withDisk } from '../support/stores.ts';

const steps = 10_000;
/** Quarter credits of a full result. */
const price = 4;

/** One run of the network, and what must hold for it. */
interface Run {
  readonly image: number;
  state: 'running' | 'failed' | 'cancelled' | 'done';
  /** Its result is cached for repeats. */
  kept: boolean;
  /** Its reservation expired before it was done: it is charged again, or refused. */
  expired: boolean;
  /** An answer with its result has ended: a crash refunds nothing. */
  final: boolean;
  /** An answer that reports the charge was sent, or is being sent. */
  reported: boolean;
  readonly finish: (error?: Error) => void;
}

interface Caller {
  readonly image: number;
  readonly key: string | undefined;
  readonly leave: AbortController;
  answer?: { readonly result: CutoutResult; readonly run: Run };
}

/** An image is identified by its red. */
const scripted =
  (runs: Run[], faults: string[]): ScriptedRun =>
  ([image], signal) =>
    new Promise((resolve, reject) => {
      for (const other of runs) {
        if (other.image !== image) continue;
        if (other.state === 'running') faults.push(`image ${image} is worked on twice at a time`);
        if (other.kept) faults.push(`image ${image} is worked on though its result is kept`);
      }
      const number = runs.length;
      const cancel = () => {
        run.state = 'cancelled';
        reject(signal?.reason);
      };
      const finish = (error?: Error) => {
        signal?.removeEventListener('abort', cancel);
        run.state = error ? 'failed' : 'done';
        if (error) return reject(error);
        run.kept = true;
        resolve(number);
      };
      const state = signal?.aborted ? 'cancelled' : 'running';
      const run: Run = { image, state, kept: false, expired: false, final: false, reported: false, finish };
      runs.push(run);
      if (signal?.aborted) reject(signal.reason);
      else signal?.addEventListener('abort', cancel, { once: true });
    });

/** The use case over a real ledger, and what a client knows of it since its server started. */
interface World {
  readonly stores: ServedStores;
  readonly idempotency: Idempotency<CachedResult>;
  readonly cutout: Cutout;
  readonly runs: Run[];
  callers: Caller[];
}

/** The ledger without its memory of contents (chargesModel.test.ts has it), so that every run is charged. */
const forgetful = (ledger: Reservations): Reservations => ({
  quote: (account, { repeat: _, ...request }) => ledger.quote(account, request),
  reserve: (account, { repeat: _, ...request }) => ledger.reserve(account, request),
  addAnswer: async () => undefined,
});

async function startWorld(
  t: ExecutionContext,
  dataDir: string,
  clock: TestClock,
  faults: string[],
): Promise<World> {
  const stores = await testServer(t, { dataDir }, { clock });
  const runs: Run[] = [];
  const { cutout, idempotency } = scriptedCutout({
    run: scripted(runs, faults),
    reservations: forgetful(stores.ledger),
    store: new InMemoryResultStore<CachedResult>({
      ttlSeconds: 600,
      maxBytes: 1e6,
      bytesOf: cachedResultBytes,
      contentKey: Buffer.alloc(32, 5),
      onError: (error) => t.fail(String(error)),
    }),
    clock,
  });
  return { stores, idempotency, cutout, runs, callers: [] };
}

test(`a result is paid for once and reported as such: ${steps} random steps agree with an oracle`, async (t) => {
  t.timeout(300_000);
  // The effects of a step come some turns later, in the oracle's order.
  withDisk(t);
  const { seed, next, below, pick, seen, count } = randomSteps(t);

  const requests = await Promise.all([0, 1, 2].map((red) => requestOf([red, 0, 0], 'full')));
  const faults: string[] = [];
  const dataDir = testFolder(t);
  const clock = new TestClock();
  let world = await startWorld(t, dataDir, clock, faults);
  const { id: accountId } = await world.stores.accounts.create('Test');
  /** Granted credits, less what was paid to servers that are gone. */
  let granted = 0;

  const held = () => world.runs.filter(({ state, expired }) => state === 'running' && !expired).length;
  const charged = () => world.runs.filter(({ state, expired }) => state === 'done' && !expired);
  const open = () => held() + charged().filter(({ final }) => !final).length;
  const balance = () => granted - price * (held() + charged().length);

  function ask(step: number): void {
    const inWorld = world;
    const image = below(requests.length);
    const request = requests[image];
    if (!request) throw new RangeError(`no image ${image}`);
    const caller: Caller = { image, key: pick([undefined, 'k', 'l']), leave: new AbortController() };
    world.callers.push(caller);
    const gone = () => {
      inWorld.callers = inWorld.callers.filter((other) => other !== caller);
    };
    const call = {
      accountId,
      requestId: `r${step}`,
      idempotencyKey: caller.key,
      signal: caller.leave.signal,
      telemetry: new RequestTelemetry(),
    };
    inWorld.cutout(request, call).then(
      (result) => {
        const run = inWorld.runs[runNumberOf(result)];
        if (inWorld !== world || !run) return;
        caller.answer = { result, run };
        const wanted = run.reported ? 0 : price;
        if (result.charged !== wanted) faults.push(`step ${step}: ${result.charged} charged, not ${wanted}`);
        if (result.replayed !== run.reported) faults.push(`step ${step}: replayed is ${result.replayed}`);
        if (caller.key === undefined && run.image !== image) faults.push(`step ${step}: another image`);
        count(run.reported ? 'answer again' : 'answer');
        run.reported = true;
      },
      (error: { code?: string }) => {
        gone();
        if (inWorld === world) count(`refused ${error.code ?? 'by a fault'}`);
      },
    );
  }

  /** The answer was sent, or its connection broke before. */
  async function end(caller: Caller, delivered: boolean): Promise<void> {
    if (!caller.answer) throw new Error('no answer');
    const { result, run } = caller.answer;
    world.callers = world.callers.filter((other) => other !== caller);
    if (!delivered && !result.replayed) run.reported = false;
    run.final = true;
    await result.end(delivered ? 'delivered' : 'broken');
    count(delivered ? 'delivered' : 'not delivered');
  }

  /** Until nothing is on its way to the network or back. */
  async function settled(step: number): Promise<void> {
    await eventually(async () => (await world.stores.ledger.openReservations()) === open());
    const { credits: stored } = await world.stores.ledger.balance(accountId);
    if (stored !== balance()) faults.push(`step ${step}: the balance is ${stored}, not ${balance()}`);
  }

  /** Separately, so that the balance that it is charged to is known. */
  async function finishLate(step: number, run: Run): Promise<void> {
    await settled(step);
    const affordable = balance() >= price;
    run.finish();
    if (affordable) run.expired = false;
    else {
      run.state = 'failed';
      run.kept = false;
    }
    count(affordable ? 'charged anew' : 'refused late');
    await settled(step);
  }

  for (let step = 0; step < steps && faults.length === 0; step++) {
    // A caller that leaves in the very turn in which the work ends may or may not be charged: the two are separated.
    const dice = next();
    const waiting = () => world.callers.filter(({ answer }) => !answer);
    const answered = () => world.callers.filter(({ answer }) => answer);
    const running = world.runs.filter(({ state }) => state === 'running');
    if (dice < 0.4) ask(step);
    else if (dice < 0.55) {
      const run = pick(running);
      if (run?.expired) await finishLate(step, run);
      else run?.finish();
      await turn();
    } else if (dice < 0.6) pick(running)?.finish(new Error('broken'));
    else if (dice < 0.72) {
      // Not between the moment when an answer learns whether it is the first and the one when it is sent.
      await turn();
      pick(waiting())?.leave.abort(fail('client_closed'));
      await turn();
    } else if (dice < 0.9) {
      // For the same reason: what another answer reports depends on whether this one has broken by then.
      await turn();
      const caller = pick(answered());
      if (caller) await end(caller, next() < 0.7);
    } else if (dice < 0.92) {
      const amount = credits(1);
      await world.stores.ledger.post(accountId, { kind: 'grant', amount });
      granted += amount;
    } else if (dice < 0.98) {
      world.idempotency.clear();
      for (const run of world.runs) run.kept = false;
      count('forgotten');
    } else if (dice < 0.99) {
      await settled(step);
      clock.forward(1_000_000);
      await world.stores.ledger.sweep();
      for (const run of world.runs) {
        if (run.state === 'running') run.expired = true;
        if (run.state === 'done') run.final = true;
      }
      count('time');
    } else {
      // Undelivered charges are refunded, and reservations in progress released.
      granted -= price * charged().filter(({ final }) => final).length;
      await world.stores.close();
      world = await startWorld(t, dataDir, clock, faults);
      count('crash');
    }
    // Some steps come at once, others after what they depend on.
    for (let turns = below(4); turns > 0; turns--) await turn();
    if (step % 50 === 49) await settled(step);
  }

  t.deepEqual(faults, [], `seed ${seed}`);
  for (const { leave } of world.callers) leave.abort(fail('client_closed'));
  await eventually(() => world.callers.every(({ answer }) => answer));
  for (const caller of world.callers) await end(caller, true);
  await settled(steps);
  t.is(await world.stores.ledger.openReservations(), 0);
  t.deepEqual(await world.stores.ledger.verify(), []);
  t.deepEqual(faults, [], `seed ${seed}`);

  t.log(Object.fromEntries(seen));
  // Every kind of step must have occurred, or the test proves less than it claims.
  for (const what of ['answer', 'answer again', 'delivered', 'not delivered', 'forgotten', 'time', 'crash'])
    t.true((seen.get(what) ?? 0) > 20, what);
  t.true(seen.has('charged anew'));
  for (const what of ['insufficient_credits', 'client_closed', 'by a fault'])
    t.true((seen.get(`refused ${what}`) ?? 0) > 20, what);
});
