import test from 'ava';
import { randomSteps } from '../support/randomSteps.ts';
import { type Batch, type BatchQueue, type Bucket, Queue } from './schedAddon.ts';

const DELAY = 20;
const PATIENCE = 3000;
const DEVICES = 3;
/** Runs that wait at most; more are not pushed. */
const ROOM = 60;
const SHAPES: readonly (readonly Bucket[])[] = [
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

type Answer = 'done' | 'refused' | 'cancelled' | 'lost';

interface Run {
  readonly id: number;
  readonly flow: number;
  readonly shape: number;
  readonly arrival: number;
  readonly deadline: number;
  /** Whether a device was lost while it ran. */
  retried: boolean;
  state: 'waiting' | 'running' | 'cancelled' | 'answered';
  answer?: Answer;
}

interface Device {
  up: boolean;
  batch?: Batch;
  startedAt: number;
  endsAt: number;
}

/**
 * What native/sched/batch_queue.h promises, written from the words: a list of runs with their states, and checks of
 * every step. Knows nothing of how runs are chosen.
 */
class Oracle {
  readonly runs = new Map<number, Run>();
  readonly devices: Device[] = Array.from({ length: DEVICES }, () => ({
    up: true,
    startedAt: 0,
    endsAt: 0,
  }));
  readonly faults: string[] = [];
  readonly answers = new Map<Answer, number>();

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

  refused(id: number, now: number): void {
    const run = this.runs.get(id);
    this.#expect(run?.state === 'waiting', `${id} was refused while ${run?.state}`);
    if (run) {
      const fastest = Math.min(...(SHAPES[run.shape] ?? []).map(([, latency]) => latency));
      const up = this.devices.filter((device) => device.up);
      const free = up.map(({ batch, endsAt }) => (batch ? Math.max(now, endsAt) : now));
      const earliest = free.length > 0 ? Math.min(...free) : now;
      this.#expect(earliest + fastest > run.deadline, `${id} was refused and could have been in time`);
    }
    this.answer(id, 'refused');
  }

  started(batch: Batch, now: number): void {
    const device = this.devices[batch.device];
    const [size = 0, latency = 0] = SHAPES[batch.shape]?.[batch.bucket] ?? [];
    this.#expect(
      batch.members.length > 0 && batch.members.length <= size,
      'the batch does not fit its bucket',
    );
    this.#expect(device?.up === true && !device.batch, `device ${batch.device} is not idle`);
    for (const id of batch.members) {
      const run = this.runs.get(id);
      this.#expect(run?.state === 'waiting', `${id} was started while ${run?.state}`);
      this.#expect(run?.shape === batch.shape, `${id} was started with another shape`);
      this.#expect(run !== undefined && now + latency <= run.deadline, `${id} was started and will be late`);
      if (run) run.state = 'running';
    }
    if (device) Object.assign(device, { batch, startedAt: now, endsAt: now + latency });
  }

  ended(device: number): void {
    const state = this.devices[device];
    for (const id of state?.batch?.members ?? [])
      this.answer(id, this.runs.get(id)?.state === 'cancelled' ? 'cancelled' : 'done');
    if (state) delete state.batch;
  }

  /** The device stops working. Returns what becomes of its runs, and of those that wait if none is left. */
  lost(device: number): { failed: number[]; cancelled: number[]; retried: number[] } {
    const state = this.devices[device];
    const outcome = { failed: [] as number[], cancelled: [] as number[], retried: [] as number[] };
    if (!state) return outcome;
    state.up = false;
    const last = this.devices.every(({ up }) => !up);
    for (const run of last ? this.waiting() : []) outcome.failed.push(run.id);
    for (const id of state.batch?.members ?? []) {
      const run = this.runs.get(id);
      if (!run) continue;
      if (run.state === 'cancelled') outcome.cancelled.push(id);
      else if (last || run.retried) outcome.failed.push(id);
      else {
        outcome.retried.push(id);
        Object.assign(run, { state: 'waiting', retried: true });
      }
    }
    delete state.batch;
    for (const id of outcome.failed) this.answer(id, 'lost');
    for (const id of outcome.cancelled) this.answer(id, 'cancelled');
    return outcome;
  }

  /** After a step in which the queue said when it wants to be asked again. */
  settled(now: number, wake: number | undefined): void {
    const idle = this.devices.some(({ up, batch }) => up && !batch);
    const waiting = this.waiting();
    this.#expect(wake === undefined || wake > now, 'it asks to be woken in the past');
    for (const run of waiting) {
      if (idle)
        this.#expect(
          now < run.arrival + DELAY,
          `${run.id} waits beside an idle device at ${now}, after its delay`,
        );
      // Until then everything that came before it has been done, and nothing later goes before it.
      const bound = PATIENCE + ROOM * LONGEST;
      this.#expect(now - run.arrival <= bound, `${run.id} starves`);
      this.#expect(now <= run.deadline, `${run.id} waits past its deadline`);
    }
    if (waiting.length > 0 && idle)
      this.#expect(wake !== undefined, 'it waits for ever beside an idle device');
  }
}

function open(): BatchQueue {
  const queue = new Queue(DEVICES, DELAY, PATIENCE);
  for (const buckets of SHAPES) queue.addShape(buckets);
  return queue;
}

function drive(oracle: Oracle, { below, next: chance, count }: ReturnType<typeof randomSteps>) {
  let queue = open();
  let now = 0;
  let wake: number | undefined;
  let ids = 0;

  const ask = () => {
    const step = queue.next(now);
    for (const batch of step.started) oracle.started(batch, now);
    // After the batches, because these delay the next one.
    for (const id of step.refused) oracle.refused(id, now);
    if (step.started.length > 0) count('batch');
    if (step.started.some(({ members }) => members.length > 1)) count('batch of several');
    wake = step.wake;
    oracle.settled(now, wake);
  };
  const sorted = (list: readonly number[]) => [...list].sort((a, b) => a - b).join();
  const compare = (what: string, given: readonly number[], expected: readonly number[]) => {
    if (sorted(given) !== sorted(expected)) oracle.faults.push(`${what}: ${given} instead of ${expected}`);
  };
  const members = (device: number, cancelled: boolean) =>
    (oracle.devices[device]?.batch?.members ?? []).filter(
      (id) => (oracle.runs.get(id)?.state === 'cancelled') === cancelled,
    );

  const finish = (device: number) => {
    const expected = [members(device, false), members(device, true)] as const;
    const { completed, cancelled } = queue.finish(device);
    compare('completed', completed, expected[0]);
    compare('cancelled', cancelled, expected[1]);
    oracle.ended(device);
    ask();
  };
  /** Lets the time pass to the next event before `until`. */
  const pass = (until: number) => {
    for (;;) {
      const ends = oracle.devices.flatMap(({ batch, endsAt }, device) =>
        batch ? [{ at: endsAt, device }] : [],
      );
      const first = ends.sort((a, b) => a.at - b.at)[0];
      const at = Math.min(first?.at ?? until, wake ?? until, until);
      now = at;
      if (first && first.at === at) finish(first.device);
      else if (wake === at) ask();
      else return;
    }
  };

  const push = () => {
    if (oracle.waiting().length >= ROOM) return;
    const id = ++ids;
    const shape = below(4) === 0 ? 1 : 0;
    const slack = [Number.POSITIVE_INFINITY, below(60), 100 + below(400)][below(3)] ?? 0;
    const flow = below(3) === 0 ? below(5) : 0;
    const run: Run = {
      id,
      flow,
      shape,
      arrival: now,
      deadline: now + slack,
      retried: false,
      state: 'waiting',
    };
    const taken = queue.push(id, flow, shape, now, Number.isFinite(slack) ? run.deadline : undefined);
    if (taken !== oracle.devices.some(({ up }) => up))
      oracle.faults.push('taken without a device, or refused');
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
      const device = oracle.devices.findIndex(({ batch }) => batch?.members.includes(run.id));
      const expected = members(device, false).length === 0 ? 'batch abandoned' : 'in batch';
      if (given !== expected) oracle.faults.push(`${run.id} was running: ${given}`);
    } else if (given !== 'unknown') {
      oracle.faults.push(`a run that is answered was cancelled: ${given}`);
    }
    count(`cancel: ${given}`);
    ask();
  };
  const lose = () => {
    // Half the time one that runs what another one lost.
    const again = oracle.devices.findIndex(({ batch }) =>
      batch?.members.some((id) => oracle.runs.get(id)?.retried),
    );
    const device = again >= 0 && chance() < 0.5 ? again : below(DEVICES);
    const state = oracle.devices[device];
    if (!state?.up) return;
    const given = queue.lose(device);
    const expected = oracle.lost(device);
    for (const what of ['failed', 'cancelled', 'retried'] as const)
      compare(`${what} on a lost device`, given[what], expected[what]);
    if (expected.retried.length > 0) count('retried');
    const last = oracle.devices.every(({ up }) => !up);
    if (!last && expected.failed.length > 0) count('lost twice');
    count(last ? 'lose the last' : 'lose');
    ask();
    // An image that no device survives.
    if (expected.retried.length > 0 && chance() < 0.3) lose();
  };
  const restore = () => {
    const device = below(DEVICES);
    const state = oracle.devices[device];
    if (!state || state.up) return;
    count(oracle.devices.some(({ up }) => up) ? 'restore' : 'restore the first');
    queue.restore(device);
    state.up = true;
    ask();
  };
  /** The process starts again while all devices are lost: nothing was left to do. */
  const restart = () => {
    if (oracle.devices.some(({ up }) => up)) return;
    queue = open();
    for (const device of oracle.devices) device.up = true;
    count('restart');
    ask();
  };

  return {
    step() {
      const dice = chance();
      if (dice < 0.5) push();
      else if (dice < 0.6) cancel();
      else if (dice < 0.63) lose();
      else if (dice < 0.65) restore();
      else if (dice < 0.652) restart();
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
  'lose the last',
  'no device',
  'retried',
  'lost twice',
  'restore',
  'restore the first',
  'restart',
];

test('10,000 random steps: no run is lost, answered twice, starved or late', (t) => {
  const steps = randomSteps(t);
  const oracle = new Oracle();
  const { step, drain } = drive(oracle, steps);
  // Some events are rare: a seed without one goes on until it has come.
  const seenAll = () => events.every((what) => steps.seen.has(what));
  for (let i = 0; oracle.faults.length === 0 && i < (seenAll() ? 10_000 : 200_000); i++) step();
  drain();
  t.deepEqual(oracle.faults, [], `seed ${steps.seed}`);
  t.deepEqual(oracle.unanswered(), []);
  for (const answer of ['done', 'refused', 'cancelled', 'lost'] as const)
    t.true((oracle.answers.get(answer) ?? 0) > 0, `nothing was ${answer}`);
  for (const what of events) t.true((steps.seen.get(what) ?? 0) > 0, `${what}: seed ${steps.seed}`);
  t.log(Object.fromEntries(oracle.answers), Object.fromEntries(steps.seen));
});
