import { setImmediate as turn } from 'node:timers/promises';
import type { TestFn } from 'ava';
import { Ledger } from '../../src/billing/ledger.ts';
import { credits } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import type { CutoutResult } from '../../src/cutout/answer.ts';
import type { Cutout } from '../../src/cutout/cutout.ts';
import type { CutoutRequest } from '../../src/cutout/request.ts';
import { fail } from '../../src/errors.ts';
import type { DeliveryOutcome } from '../../src/idempotency/sharedResult.ts';
import { RequestTelemetry } from '../../src/ops/telemetry.ts';
import { InDoubt, StoreError } from '../../src/store/error.ts';
import { NodeTable } from '../../src/store/nodeTable.ts';
import { withTransactions } from '../support/database.ts';
import { randomSteps } from '../support/randomSteps.ts';
import {
  requestOf,
  runNumberOf,
  type Run as ScriptedRun,
  scriptedCutout,
} from '../support/scriptedCutout.ts';
import { Activity, SharedPlace, SharedStore } from '../support/sharedStore.ts';
import { type NewPlace, noFreePreviews, TestClock, withDisk } from '../support/stores.ts';

const nodeCount = 3;
const keptMs = 600_000;
const lifeMs = 900_000;
/** A charge that is further ahead of the clock does not carry over. */
const aheadMs = 60_000;
/** Quarter credits. */
const prices = { full: 4, preview: 1 } as const;

/** What happens to the transactions that the test delayed, in turn: at random, a run might have too few of one of them. */
const outcomes = ['done', 'away', 'in doubt'] as const;
type Outcome = (typeof outcomes)[number];

/** Delays the next transaction of a node. */
class Gate {
  armed = false;
  /** Since the beginning of the step. */
  caught = false;
  proceed: ((outcome: Outcome) => void) | undefined;

  catch(): Promise<Outcome> {
    this.armed = false;
    this.caught = true;
    return new Promise((resolve) => {
      this.proceed = resolve;
    });
  }
}

/** An answer in progress that may carry a charge. */
interface Holder {
  expiresAt: number;
  /** Its work is finished. */
  settled: boolean;
}

/** The charge for one content: valid after an answer with it was sent, and while one may still be. */
class Charge {
  readonly price: number;
  readonly reservedAt: number;
  readonly at: number;
  sent = false;
  readonly holders = new Set<Holder>();

  constructor(price: number, reservedAt: number, at: number) {
    this.price = price;
    this.reservedAt = reservedAt;
    this.at = at;
  }

  get stands(): boolean {
    return this.sent || this.holders.size > 0;
  }

  send(): void {
    this.sent = true;
    this.holders.clear();
  }
}

/** One run of the network. */
interface Run {
  readonly node: Node;
  readonly content: string;
  readonly price: number;
  /** `held`: its reservation is open. */
  state: 'held' | 'expired' | 'over';
  /** The charge that it repeats, or carries now. */
  charge: Charge | undefined;
  readonly holder: Holder;
  readonly end: (error?: Error) => void;
  pending: boolean;
}

/** A result in one process, and the callers there whose answers with it have not ended. */
interface Share {
  readonly node: Node;
  readonly run: Run;
  readonly holder: Holder;
  readonly callers: Set<Caller>;
  /** An answer was sent. */
  final: boolean;
}

interface Caller {
  readonly node: Node;
  readonly price: number;
  readonly leave: AbortController;
  answer?: { readonly result: CutoutResult; readonly share: Share };
}

interface Node {
  readonly id: string;
  readonly ledger: Ledger;
  readonly store: SharedStore;
  readonly cutout: Cutout;
  readonly gate: Gate;
  readonly process: { dead: boolean };
  /** The oracle's expectation for the delayed transaction, and the failure it may have. */
  deferred: { readonly change: (outcome: Outcome) => Run | undefined; readonly mayFail: boolean } | undefined;
}

type Event =
  | { readonly what: 'start'; readonly run: Run }
  | { readonly what: 'cancel'; readonly run: Run }
  | { readonly what: 'answer'; readonly caller: Caller; readonly result: CutoutResult }
  | { readonly what: 'refused'; readonly caller: Caller; readonly code: string };

/**
 * Complete requests of several nodes, from the image to the end of the answer, against an oracle that predicts the balance
 * and the open answers after every step from what callers see: a caller who gets an answer pays once for its content, an error
 * costs nothing. Registers one test with `test`.
 */
export function testChargesModel(test: TestFn, newPlace: NewPlace, steps: number): void {
  test(`requests of ${nodeCount} nodes cost what an oracle predicts over ${steps} random steps`, async (t): Promise<void> => {
    t.timeout(600_000);
    withDisk(t);
    const { seed, next, below, pick, seen, count } = randomSteps(t);

    const activity = new Activity();
    const clock = new TestClock();
    const { now } = clock;
    const place = await newPlace(t);
    const stores = await openStores({ ...place, billing: noFreePreviews, now });
    t.teardown(stores.close);
    const table = new NodeTable(stores.database);
    const shared = new SharedPlace();
    const { id: accountId } = await stores.accounts.create('Test');

    const runs: Run[] = [];
    let callers: Caller[] = [];
    let events: Event[] = [];
    interface Content {
      readonly name: string;
      readonly request: CutoutRequest;
      readonly price: number;
    }
    const contents = new Map<string, Content>();
    /** Red and blue identify the image, green determines the cost of its size. */
    async function contentOf(number: number, size: keyof typeof prices): Promise<Content> {
      const pixel = [number & 255, prices[size], number >> 8] as const;
      const name = pixel.join('/');
      const known = contents.get(name);
      if (known) return known;
      const content = { name, request: await requestOf(pixel, size), price: prices[size] };
      contents.set(name, content);
      return content;
    }

    // State of the oracle.
    let granted = 0;
    const charges: Charge[] = [];
    /** Keyed by the bytes of the result, which are unique to its callers. */
    const shares = new Map<Buffer, Share>();
    const remembered = new Map<string, Charge>();
    const standing = (content: string) => {
      const charge = remembered.get(content);
      // From a time to come: the clock was set back since.
      const isAhead = charge && charge.reservedAt > clock.at + aheadMs;
      return charge?.stands && charge.at + keptMs > clock.at && !isAhead ? charge : undefined;
    };
    const held = () => runs.filter(({ state }) => state === 'held');
    const paying = () => held().filter(({ charge }) => charge === undefined);
    const balance = () =>
      granted -
      paying().reduce((sum, { price }) => sum + price, 0) -
      charges.reduce((sum, { stands, price }) => sum + (stands ? price : 0), 0);
    const open = () =>
      held().length +
      charges.reduce((sum, { holders }) => sum + [...holders].filter(({ settled }) => settled).length, 0);

    const runOf = (result: CutoutResult): Run => {
      const run = runs[runNumberOf(result)];
      if (!run) throw new Error('an answer of no run');
      return run;
    };

    const oracle = {
      started(run: Run): void {
        run.charge = standing(run.content);
        if (run.charge && !run.charge.sent) run.charge.holders.add(run.holder);
      },
      released(run: Run): void {
        if (run.state === 'held') run.charge?.holders.delete(run.holder);
        run.state = 'over';
      },
      /** False if the reservation was released meanwhile and cannot be paid any more: there is no result then. */
      settled(run: Run): boolean {
        const late = run.state !== 'held';
        const repeat = run.charge?.stands === true;
        // Reserved again, for its own reservation, or that of a refunded charge's repeat, pays for nothing.
        const reservedAt = late || run.charge ? clock.at : run.holder.expiresAt - lifeMs;
        if (!repeat) run.charge = standing(run.content);
        if (late && !run.charge && balance() < run.price) {
          count('settle in vain');
          run.state = 'over';
          return false;
        }
        const how = repeat ? 'a repeat' : run.charge ? 'what was charged already' : 'work';
        count(`settle ${how}`);
        if (late) count('settle late');
        run.state = 'over';
        if (late) run.holder.expiresAt = clock.at + lifeMs;
        if (!run.charge) {
          run.charge = new Charge(run.price, reservedAt, clock.at);
          charges.push(run.charge);
          remembered.set(run.content, run.charge);
          run.charge.holders.add(run.holder);
        } else if (!run.charge.sent) run.charge.holders.add(run.holder);
        run.holder.settled = true;
        return true;
      },
      answered(caller: Caller, result: CutoutResult): void {
        let share = shares.get(result.bytes);
        if (!share) {
          const run = runOf(result);
          const copied = shared.copies.has(result.bytes);
          if (copied && !run.charge?.stands)
            throw new Error('a result is handed out that nothing was charged for');
          const holder = copied ? { expiresAt: clock.at + lifeMs, settled: true } : run.holder;
          if (copied && !run.charge?.sent) run.charge?.holders.add(holder);
          share = { node: caller.node, run, holder, callers: new Set(), final: false };
          shares.set(result.bytes, share);
          count(copied ? 'answer with a kept result' : 'answer');
        }
        share.callers.add(caller);
        caller.answer = { result, share };
      },
      /** Returns the ledger's next operation, if any. */
      ended(caller: Caller, { run, holder, callers: all, ...share }: Share, outcome: DeliveryOutcome) {
        all.delete(caller);
        if (share.final) return undefined;
        if (outcome !== 'unsent') return () => run.charge?.send();
        return all.size === 0 ? () => run.charge?.holders.delete(holder) : undefined;
      },
      swept(): void {
        for (const [content, { at }] of remembered) if (at + keptMs <= clock.at) remembered.delete(content);
        const over = ({ expiresAt }: Holder) => expiresAt <= clock.at;
        for (const charge of charges)
          if ([...charge.holders].some((holder) => holder.settled && over(holder))) charge.send();
        for (const run of held()) {
          if (!over(run.holder)) continue;
          run.charge?.holders.delete(run.holder);
          run.state = 'expired';
        }
      },
      crashed(node: Node): void {
        for (const run of runs) {
          if (run.node !== node) continue;
          run.charge?.holders.delete(run.holder);
          run.state = 'over';
          run.pending = false;
        }
        for (const share of shares.values())
          if (share.node === node) share.run.charge?.holders.delete(share.holder);
      },
    };

    const scripted =
      (node: () => Node): ScriptedRun =>
      (pixel, signal) => {
        const number = runs.length;
        const [, price] = pixel;
        let finish: (error?: unknown) => void = () => {};
        const done = new Promise<void>((resolve, reject) => {
          finish = (error) => (error ? reject(error) : resolve());
        });
        const cancel = () => {
          if (!run.pending) return;
          run.pending = false;
          events.push({ what: 'cancel', run });
          finish(signal?.reason);
        };
        const run: Run = {
          node: node(),
          content: pixel.join('/'),
          price,
          state: 'held',
          charge: undefined,
          holder: { expiresAt: clock.at + lifeMs, settled: false },
          end: (error) => {
            signal?.removeEventListener('abort', cancel);
            run.pending = false;
            finish(error);
          },
          pending: true,
        };
        runs.push(run);
        events.push({ what: 'start', run });
        if (signal?.aborted) cancel();
        else signal?.addEventListener('abort', cancel, { once: true });
        return activity.parked(async () => {
          await done;
          return number;
        });
      };

    let [serial, mayFail] = [0, 0];
    async function startNode(): Promise<Node> {
      const id = `node ${serial++}`;
      await table.renew(id, 1e12);
      const gate = new Gate();
      const process = { dead: false };
      const database = withTransactions(stores.database, (work) =>
        activity.during(async () => {
          if (process.dead) return activity.parked(() => new Promise<never>(() => {}), 1);
          const outcome = gate.armed ? await activity.parked(() => gate.catch(), 1) : 'done';
          const unavailable = (cause?: Error) =>
            new StoreError('STORE_UNAVAILABLE', 'The books are away.', cause && { cause });
          if (outcome === 'away') throw unavailable();
          const result = await stores.database.transaction(work);
          if (outcome === 'in doubt') throw unavailable(new InDoubt('no answer'));
          return result;
        }),
      );
      const ledger = new Ledger(
        { ...database, get: (...call) => activity.during(() => stores.database.get(...call)) },
        { billing: noFreePreviews, now, node: id },
      );
      const store = new SharedStore(shared, activity, now, ledger);
      const { cutout } = scriptedCutout({
        run: scripted(() => node),
        reservations: ledger,
        store,
        clock,
      });
      const node: Node = { id, ledger, store, cutout, gate, process, deferred: undefined };
      return node;
    }
    const nodes: Node[] = [];
    for (let i = 0; i < nodeCount; i++) nodes.push(await startNode());

    /** Until everything waits for the test. */
    async function quiet(): Promise<void> {
      const until = performance.now() + 60_000;
      for (let idle = 0; idle < 3; idle = activity.active === 0 ? idle + 1 : 0) {
        await turn();
        if (performance.now() > until) throw new Error(`${activity.active} things do not come to rest`);
      }
    }

    /** One of a few contents, which are replaced after a while; in use when this returns it. */
    async function ask(step: number, node: Node, given?: Content): Promise<void> {
      const size = next() < 0.7 ? 'full' : 'preview';
      const content = given ?? (await contentOf(Math.floor(step / 30) + below(2), size));
      const caller: Caller = { node, price: content.price, leave: new AbortController() };
      callers.push(caller);
      const call = {
        accountId,
        requestId: `r${step}`,
        idempotencyKey: pick([undefined, undefined, 'k', 'l']),
        signal: caller.leave.signal,
        telemetry: new RequestTelemetry(),
      };
      activity
        .call(() => node.cutout(content.request, call))
        .then(
          (result) => events.push({ what: 'answer', caller, result }),
          (error: { code?: string }) =>
            events.push({ what: 'refused', caller, code: error.code ?? 'by a fault' }),
        );
    }

    /**
     * The oracle processes events in order. Of two transactions that meet, a database may answer the later one first, so a
     * refusal for lack of credits is judged with the credits of its moment and with those that everything of its step left.
     */
    function observe(actor: Node | undefined, made: Run | undefined): void {
      const all = events;
      events = [];
      // A result without callers is released before the next work begins.
      const gotten = all.some(
        (event) =>
          event.what === 'answer' && runOf(event.result) === made && !shared.copies.has(event.result.bytes),
      );
      if (made && !gotten) unwanted(made);
      const refusedThough: Caller[] = [];
      for (const event of all) {
        if (event.what === 'start') oracle.started(event.run);
        else if (event.what === 'cancel') {
          const { run } = event;
          count('cancelled');
          // Its release may be the delayed transaction.
          defer(run.node === actor ? actor : undefined, () => oracle.released(run));
        } else if (event.what === 'answer') oracle.answered(event.caller, event.result);
        else {
          callers = callers.filter((caller) => caller !== event.caller);
          count(`refused ${event.code}`);
          if (event.code === 'insufficient_credits' && balance() >= event.caller.price)
            refusedThough.push(event.caller);
        }
      }
      if (refusedThough.some(({ price }) => balance() >= price))
        throw new Error('refused although there are credits');
    }

    /** Now, or when the transaction that was just delayed continues. */
    function defer(
      actor: Node | undefined,
      change: (outcome: Outcome) => unknown,
      mayFail = false,
    ): Run | undefined {
      const run = (outcome: Outcome) => change(outcome) as Run | undefined;
      if (!actor?.gate.caught || actor.deferred) return run('done');
      actor.deferred = { change: run, mayFail };
      return undefined;
    }

    function unwanted({ charge, holder }: Run): void {
      charge?.holders.delete(holder);
    }

    for (let step = 0; step < steps; step++) {
      try {
        const node = pick(nodes);
        if (!node) throw new Error('no node');
        const waiting = callers.filter(({ answer }) => !answer);
        const answered = callers.filter(({ answer }) => answer);
        const running = runs.filter(({ pending }) => pending);
        const dice = next();
        /** Of the acting node; one transaction per node is delayed at a time. */
        const slow = (on: Node) => {
          actor = on;
          on.gate.armed = on.gate.proceed === undefined && next() < 0.25;
        };
        let actor: Node | undefined;
        let made: Run | undefined;
        for (const { gate } of nodes) gate.caught = false;

        if (dice < 0.33) {
          slow(node);
          await ask(step, node);
        } else if (dice < 0.5) {
          const run = pick(running);
          if (run) {
            slow(run.node);
            run.end();
            await quiet();
            if (run.node.gate.caught) count('slow settle');
            const change = (outcome: Outcome) => {
              if (outcome === 'away') oracle.released(run);
              else if (!oracle.settled(run)) return undefined;
              if (outcome === 'in doubt') unwanted(run);
              return outcome === 'done' ? run : undefined;
            };
            made = defer(actor, change, true);
          }
        } else if (dice < 0.54) {
          const run = pick(running);
          if (run) {
            slow(run.node);
            run.end(new Error('broken'));
            await quiet();
            defer(actor, () => oracle.released(run));
            count('broken');
          }
        } else if (dice < 0.65) {
          const caller = pick(waiting);
          if (caller) {
            slow(caller.node);
            caller.leave.abort(fail(next() < 0.5 ? 'timeout' : 'client_closed'));
          }
        } else if (dice < 0.8) {
          const caller = pick(answered);
          if (caller?.answer) {
            slow(caller.node);
            callers = callers.filter((other) => other !== caller);
            const { result, share } = caller.answer;
            const ending = pick(['delivered', 'broken', 'unsent', 'unsent'] as const) ?? 'unsent';
            result.end(ending).catch((error: unknown) => t.fail(String(error)));
            await quiet();
            const change = oracle.ended(caller, share, ending);
            if (ending !== 'unsent') share.final = true;
            if (change) defer(actor, change);
            count(ending);
          }
        } else if (dice < 0.88) {
          const held = pick(nodes.filter(({ gate }) => gate.proceed));
          if (held?.gate.proceed) {
            const { deferred } = held;
            const { proceed } = held.gate;
            const outcome = deferred?.mayFail ? (outcomes[mayFail++ % outcomes.length] ?? 'done') : 'done';
            held.gate.proceed = undefined;
            held.deferred = undefined;
            proceed(outcome);
            await quiet();
            made = deferred?.change(outcome);
            count(`slow, then ${outcome}`);
          }
        } else if (dice < 0.91) {
          const amount = credits(2);
          if (balance() < prices.full) {
            await stores.ledger.post(accountId, { kind: 'grant', amount });
            granted += amount;
          }
        } else if (dice < 0.95) {
          shared.evict();
          count('evicted');
        } else if (dice < 0.975) {
          // Another caller requests work in progress.
          const run = pick(running);
          shared.loseLocks();
          const other = pick(nodes.filter((each) => each !== run?.node));
          const content = contents.get(run?.content ?? '');
          if (other && content) await ask(step, other, content);
          count('locks lost');
        } else if (dice < 0.99) {
          // A whole lifetime: reservations of work in progress are released meanwhile.
          const life = next() < 0.3;
          const by = life ? lifeMs : next() < 0.5 ? below(30_000) : below(1_500_000);
          clock.forward(!life && next() < 0.2 ? -by : by);
          count('time');
          if (life || next() < 0.5) {
            await node.ledger.sweep();
            oracle.swept();
            count('sweep');
          }
        } else {
          node.process.dead = true;
          node.store.dead = true;
          oracle.crashed(node);
          callers = callers.filter((caller) => caller.node !== node);
          await table.remove(node.id);
          await nodes.find((other) => other !== node)?.ledger.recover();
          nodes[nodes.indexOf(node)] = await startNode();
          shared.forget(node.store);
          count('crash');
        }
        await quiet();
        observe(actor, made);
        for (const { gate } of nodes) gate.armed = false;

        const stored = (await stores.ledger.balance(accountId)).credits as number;
        if (stored !== balance()) throw new Error(`the balance is ${stored}, not ${balance()}`);
        const rows = await stores.ledger.openReservations();
        if (rows !== open()) throw new Error(`${rows} are open, not ${open()}`);
        if (step % 500 === 499) t.deepEqual(await stores.ledger.verify(), []);
      } catch (error) {
        t.log(Object.fromEntries(seen));
        t.fail(`step ${step}, seed ${seed}: ${error instanceof Error ? error.message : error}`);
        return;
      }
    }
    t.log(Object.fromEntries([...seen].sort()));
    for (const what of [
      'answer',
      'answer with a kept result',
      'settle work',
      'settle a repeat',
      'unsent',
      'crash',
    ])
      t.true((seen.get(what) ?? 0) > steps / 200, what);
    for (const what of [
      'slow settle',
      'slow, then done',
      'slow, then away',
      'slow, then in doubt',
      'refused timeout',
      'refused client_closed',
      'refused insufficient_credits',
      'locks lost',
      'evicted',
      'sweep',
    ])
      t.true((seen.get(what) ?? 0) > steps / 1000, what);
    for (const what of ['settle what was charged already', 'settle late'])
      t.true((seen.get(what) ?? 0) > steps / 5000, what);
  });
}
