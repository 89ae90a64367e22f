import test from 'ava';
import { randomSteps } from '../support/randomSteps.ts';
import { type Bucket, Queue, type Step } from './schedAddon.ts';

const DELAY = 20;
/** Runs that wait at most; more are not pushed. */
const ROOM = 60;
const TABLES: readonly (readonly Bucket[])[] = [
  [
    [1, 30],
    [2, 40],
    [4, 60],
    [8, 100],
  ],
  [
    [1, 70],
    [3, 130],
  ],
];
const LONGEST = 130;

type Answer = 'done' | 'cancelled' | 'lost';

interface Run {
  readonly id: number;
  readonly arrival: number;
  state: 'waiting' | 'running' | 'cancelled' | 'answered';
  answer?: Answer;
}

interface Batch {
  readonly size: number;
  readonly members: readonly number[];
  readonly endsAt: number;
}

/**
 * What native/sched/batch_queue.h promises, written from the words: a list of runs with their states, and checks of
 * every step. Knows nothing of how runs are chosen.
 */
class Oracle {
  readonly runs = new Map<number, Run>();
  readonly faults: string[] = [];
  readonly answers = new Map<Answer, number>();
  buckets: readonly Bucket[];
  up = true;
  batch: Batch | undefined;

  constructor(buckets: readonly Bucket[]) {
    this.buckets = buckets;
  }

  #expect(holds: boolean, fault: string): void {
    if (!holds) this.faults.push(fault);
  }

  waiting(): Run[] {
    return [...this.runs.values()].filter(({ state }) => state === 'waiting');
  }

  unanswered(): Run[] {
    return [...this.runs.values()].filter(({ state }) => state !== 'answered');
  }

  answer(id: number, answer: Answer): void {
    const run = this.runs.get(id);
    this.#expect(run !== undefined, `${id} was answered and never asked`);
    if (!run) return;
    this.#expect(run.state !== 'answered', `${id} was answered twice: ${run.answer}, ${answer}`);
    this.#expect(
      (answer === 'cancelled') === (run.state === 'cancelled') || run.state === 'waiting',
      `${id} was ${run.state} and answered ${answer}`,
    );
    run.state = 'answered';
    run.answer = answer;
    this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1);
    // Answered runs are kept, so that a second answer is found.
  }

  #started({ bucket = -1, members = [] }: Step, now: number): void {
    const [size, latency] = this.buckets[bucket] ?? [0, 0];
    this.#expect(members.length > 0 && members.length <= size, 'the batch does not fit its bucket');
    this.#expect(this.up, 'a batch was started on a lost device');
    for (const id of members) {
      const run = this.runs.get(id);
      this.#expect(run?.state === 'waiting', `${id} was started while ${run?.state}`);
      if (run) run.state = 'running';
    }
    this.batch = { size, members, endsAt: now + latency };
  }

  /** What the idle device does next. */
  step(step: Step, now: number): void {
    if (step.members) this.#started(step, now);
    const { wake } = step;
    this.#expect(wake === undefined || wake > now, 'it asks to be woken in the past');
    for (const run of this.waiting()) {
      this.#expect(
        this.batch !== undefined || now < run.arrival + DELAY,
        `${run.id} waits beside an idle device at ${now}, after its delay`,
      );
      this.#expect(this.batch !== undefined || wake !== undefined, 'it waits for ever beside an idle device');
      // Until then everything that came before it has been done, and nothing later goes before it.
      this.#expect(now - run.arrival <= ROOM * LONGEST, `${run.id} starves`);
    }
  }

  /** The members of the batch that were cancelled, or were not. */
  members(cancelled: boolean): number[] {
    const { members = [] } = this.batch ?? {};
    return members.filter((id) => (this.runs.get(id)?.state === 'cancelled') === cancelled);
  }

  /** The batch has ended, with this answer for its runs, or without one: then they wait again. */
  ended(answer?: Answer): void {
    const members = this.members(false);
    for (const id of this.members(true)) this.answer(id, 'cancelled');
    for (const id of members) {
      const run = this.runs.get(id);
      if (answer) this.answer(id, answer);
      else if (run) run.state = 'waiting';
    }
    this.batch = undefined;
  }
}

function drive(
  buckets: readonly Bucket[],
  oracle: Oracle,
  { below, next: chance, count }: ReturnType<typeof randomSteps>,
) {
  const open = () => new Queue(buckets, DELAY);
  let queue = open();
  let now = 0;
  let wake: number | undefined;
  let ids = 0;

  const ask = () => {
    if (oracle.batch) return;
    const step = queue.next(now);
    oracle.step(step, now);
    if (oracle.batch) count('batch');
    if ((step.members?.length ?? 0) > 1) count('batch of several');
    wake = step.wake;
  };
  const sorted = (list: readonly number[]) => [...list].sort((a, b) => a - b).join();
  const compare = (what: string, given: readonly number[], expected: readonly number[]) => {
    if (sorted(given) !== sorted(expected)) oracle.faults.push(`${what}: ${given} instead of ${expected}`);
  };

  const finish = () => {
    const { runs, cancelled } = queue.finish();
    compare('done', runs, oracle.members(false));
    compare('cancelled', cancelled, oracle.members(true));
    oracle.ended('done');
    ask();
  };
  /** Lets the time pass to the next event before `until`. */
  const pass = (until: number) => {
    for (;;) {
      const ends = oracle.batch?.endsAt;
      now = Math.min(ends ?? wake ?? until, until);
      if (now === ends) finish();
      else if (now === wake && !oracle.batch) ask();
      else return;
    }
  };

  const push = () => {
    if (oracle.waiting().length >= ROOM) return;
    const id = ++ids;
    const run: Run = { id, arrival: now, state: 'waiting' };
    const taken = queue.push(id, now);
    if (taken !== oracle.up) oracle.faults.push('taken without a device, or refused');
    if (!taken) {
      count('no device');
      return;
    }
    oracle.runs.set(id, run);
    count('push');
    ask();
  };
  const cancel = () => {
    // Now and then one that is unknown or answered.
    const known = oracle.unanswered();
    const run = chance() < 0.9 ? known[below(known.length)] : oracle.runs.get(below(ids + 10));
    const given = queue.cancel(run?.id ?? ids + 1000);
    if (run?.state === 'waiting') {
      if (given !== 'removed') oracle.faults.push(`${run.id} was waiting: ${given}`);
      run.state = 'cancelled';
      oracle.answer(run.id, 'cancelled');
    } else if (run?.state === 'running') {
      run.state = 'cancelled';
      const expected = oracle.members(false).length === 0 ? 'batch abandoned' : 'in batch';
      if (given !== expected) oracle.faults.push(`${run.id} was running: ${given}`);
    } else if (given !== 'unknown') {
      oracle.faults.push(`a run that is answered was cancelled: ${given}`);
    }
    count(`cancel: ${given}`);
    ask();
  };
  /** The batch does not fit into the device's memory. */
  const overflow = () => {
    if (!oracle.batch) return;
    const { size } = oracle.batch;
    const smaller = oracle.buckets.filter(([images]) => images < size);
    const shrunk = queue.shrink(size);
    if (shrunk !== smaller.length > 0) oracle.faults.push(`${size} is too large: ${shrunk}`);
    if (!shrunk) return;
    oracle.buckets = smaller;
    compare('cancelled and too large', queue.retry(), oracle.members(true));
    count(oracle.members(true).length > 0 ? 'retry without the cancelled' : 'retry');
    oracle.ended();
    ask();
  };
  const lose = () => {
    if (!oracle.up) return;
    const { runs, cancelled } = queue.lose();
    const waiting = oracle.waiting().map(({ id }) => id);
    compare('lost', runs, [...waiting, ...oracle.members(false)]);
    compare('cancelled and lost', cancelled, oracle.members(true));
    count(oracle.batch ? 'lose a batch' : 'lose');
    for (const id of waiting) oracle.answer(id, 'lost');
    oracle.ended('lost');
    oracle.up = false;
    ask();
  };
  const restore = () => {
    if (oracle.up) return;
    count('restore');
    queue.restore();
    oracle.up = true;
    ask();
  };
  /** The process starts again while the device is lost: nothing was left to do. */
  const restart = () => {
    if (oracle.up) return;
    count('restart');
    queue = open();
    oracle.buckets = buckets;
    oracle.up = true;
    ask();
  };

  return {
    step() {
      const dice = chance();
      if (dice < 0.5) push();
      else if (dice < 0.6) cancel();
      else if (dice < 0.612) lose();
      else if (dice < 0.65) restore();
      else if (dice < 0.66) restart();
      else if (dice < 0.67) overflow();
      else pass(now + below(below(10) === 0 ? 400 : 25));
    },
    drain() {
      pass(now + 100_000);
    },
  };
}

const events = [
  'batch of several',
  'cancel: in batch',
  'cancel: batch abandoned',
  'lose',
  'lose a batch',
  'no device',
  'restore',
  'restart',
  'retry',
  'retry without the cancelled',
];

for (const buckets of TABLES) {
  const sizes = buckets.map(([size]) => size).join(', ');
  test(`10,000 random steps, batches of ${sizes}: no run is lost, answered twice or starved`, (t) => {
    const steps = randomSteps(t);
    const oracle = new Oracle(buckets);
    const { step, drain } = drive(buckets, oracle, steps);
    // Some events are rare: a seed without one goes on until it has come.
    const seenAll = () => events.every((what) => steps.seen.has(what));
    for (let i = 0; oracle.faults.length === 0 && i < (seenAll() ? 10_000 : 200_000); i++) step();
    drain();
    t.deepEqual(oracle.faults, [], `seed ${steps.seed}`);
    t.deepEqual(oracle.unanswered(), []);
    for (const answer of ['done', 'cancelled', 'lost'] as const)
      t.true((oracle.answers.get(answer) ?? 0) > 0, `nothing was ${answer}`);
    for (const what of events) t.true((steps.seen.get(what) ?? 0) > 0, `${what}: seed ${steps.seed}`);
    t.log(Object.fromEntries(oracle.answers), Object.fromEntries(steps.seen));
  });
}
