import type { MemoryBudget } from './memory.ts';

export interface FairSchedulerOptions {
  /** Pieces of work under way at a time. */
  readonly running: number;
  /** Milliseconds that somebody may have to wait for a slot; Infinity: no bound. */
  readonly waitMs: number;
  readonly memory: MemoryBudget;
}

/** A piece of work that asks for a slot. */
export interface Work {
  readonly account: string;
  /** How long it should take by itself, in milliseconds. */
  readonly ms: number;
  readonly bytes: number;
  /** Takes much longer than a preview: never has all places, so that previews find one. */
  readonly heavy: boolean;
  /** When it must be done, as `now` counts; Infinity: at no time. */
  readonly deadline: number;
}

/** It would wait too long, or could not be done before its deadline. */
export interface Busy {
  readonly outcome: 'busy';
  readonly why: 'queue' | 'deadline';
  /** Whole seconds, 1 to 60. */
  readonly retryAfter: number;
}

export type FairSchedulerOutcome =
  | Busy
  /** It needs more memory than there ever is. */
  | { readonly outcome: 'large' }
  | {
      readonly outcome: 'admitted';
      /** Frees the place and its memory; any number of times. `done`: the work came to its end. */
      readonly leave: (done: boolean) => void;
    };

interface FairSchedulerStats {
  readonly running: number;
  readonly waiting: number;
  /** Milliseconds of work that wait. */
  readonly waitingMs: number;
  /** Milliseconds of work that are done in a millisecond, when there is always some. */
  readonly speed: number;
  readonly refused: {
    /** Before the body was read. */
    readonly early: number;
    /** Would have waited too long. */
    readonly queue: number;
    /** Could not have been done, or after waiting could no longer be done, before its deadline. */
    readonly deadline: number;
    readonly memory: number;
  };
}

interface Waiting {
  readonly work: Work;
  /** The lower, the earlier its turn among those of its account. */
  readonly key: number;
  readonly settle: (outcome: FairSchedulerOutcome) => void;
}

interface Account {
  /** Milliseconds of work it was given, counted like `#round`. */
  served: number;
  /** In the order of their turns. */
  readonly queue: Waiting[];
}

/** Ageing: a job yields to shorter jobs of its account that arrive within `stretch` × the difference in length. */
const stretch = 4;

/** How much of what was learnt about the speed stays when a piece of work is done. */
const stays = 15 / 16;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
const lengthOf = (queue: readonly Waiting[]): number => sum(queue.map(({ work }) => work.ms));

/**
 * Admits work to the memory and the processors (docs/decisions/0150). A bounded number of pieces of work is under way.
 * Whose turn is next is decided by
 *
 * - account: the one that was given least goes first (start-time fair queueing), so nobody waits for the many requests
 *   of somebody else;
 * - length: within an account, shorter work goes before longer work that came a little earlier; and heavy work leaves
 *   one place to the rest. Every turn comes, as what arrives much later overtakes nobody.
 *
 * How long a wait will be is known beforehand, from the work ahead and the speed at which the machine gets through it:
 * who would wait longer than allowed, or beyond its deadline, is refused at once.
 */
export class FairScheduler {
  readonly #options: FairSchedulerOptions;
  readonly #now: () => number;
  readonly #accounts = new Map<string, Account>();
  readonly #running = new Set<Work>();
  readonly #refused = { early: 0, queue: 0, deadline: 0, memory: 0 };
  /** What the account that was served last had been given before. */
  #round = 0;
  /** Work that ended while others waited all the time, and how long that took: milliseconds, decaying. */
  #done = 5000;
  #took = 5000;
  /** Somebody is waiting. */
  #pressed = false;
  /** When work last ended since somebody has been waiting all the time; undefined: none has. */
  #lastEnd: number | undefined;
  /** The least that was asked for lately, in milliseconds; undefined: nothing yet. */
  #least: number | undefined;

  /** `now` gives milliseconds. */
  constructor(options: FairSchedulerOptions, now: () => number) {
    this.#options = options;
    this.#now = now;
    options.memory.onFreed(() => this.#serve());
  }

  get stats(): FairSchedulerStats {
    const queues = this.#queues();
    return {
      running: this.#running.size,
      waiting: sum(queues.map(({ length }) => length)),
      waitingMs: sum(queues.map(lengthOf)),
      speed: this.#speed,
      refused: { ...this.#refused },
    };
  }

  /**
   * For somebody who has not sent an image yet: the refusal, when the least that was asked for lately would be
   * refused too. Nothing is uploaded in vain then.
   */
  refusal(account: string, deadline: number): Busy | undefined {
    if (this.#least === undefined) return undefined;
    const busy = this.#busy({ account, ms: this.#least, bytes: 0, heavy: false, deadline });
    if (busy) this.#refused.early++;
    return busy;
  }

  /** Rejects with the signal's reason when it is aborted while waiting. */
  async enter(work: Work, signal: AbortSignal): Promise<FairSchedulerOutcome> {
    signal.throwIfAborted();
    const least = this.#least ?? work.ms;
    this.#least = Math.min(work.ms, least + (work.ms - least) / 16);
    if (work.bytes > this.#options.memory.mostWork) {
      this.#refused.memory++;
      return { outcome: 'large' };
    }
    const busy = this.#busy(work);
    if (busy) {
      this.#refused[busy.why]++;
      return busy;
    }
    return this.#wait(work, signal);
  }

  get #speed(): number {
    return this.#done / this.#took;
  }

  #queues(): readonly (readonly Waiting[])[] {
    return [...this.#accounts.values()].map(({ queue }) => queue);
  }

  /**
   * Work that is done before the turn of this comes: what is left of that under way (half, on average), and of every
   * other account as much as of its own.
   */
  #ahead({ account, ms }: Work): number {
    const own = this.#accounts.get(account)?.queue ?? [];
    const key = this.#keyOf(ms);
    const before = lengthOf(own.filter((other) => other.key <= key));
    const others = this.#queues()
      .filter((queue) => queue !== own)
      .map((queue) => Math.min(lengthOf(queue), before + ms));
    return before + sum(others) + sum([...this.#running].map((work) => work.ms / 2));
  }

  #busy(work: Work): Busy | undefined {
    // An idle machine tries what it takes for hopeless: only so does it learn that it is not.
    if (this.#running.size === 0) return undefined;
    const free = this.#running.size < this.#options.running && !this.#pressed;
    const wait = free ? 0 : this.#ahead(work) / this.#speed;
    const late = this.#now() + Math.max(work.ms, wait + work.ms / this.#speed) > work.deadline;
    if (!late && wait <= this.#options.waitMs) return undefined;
    return busyFor(wait, late ? 'deadline' : 'queue');
  }

  #keyOf(ms: number): number {
    return this.#now() + stretch * ms;
  }

  #wait(work: Work, signal: AbortSignal): Promise<FairSchedulerOutcome> {
    return new Promise((resolve, reject) => {
      const account = this.#accountOf(work.account);
      const abort = () => {
        account.queue.splice(account.queue.indexOf(waiting), 1);
        reject(signal.reason);
        // What stood behind it may fit where it did not.
        this.#serve();
      };
      const settle = (outcome: FairSchedulerOutcome) => {
        signal.removeEventListener('abort', abort);
        resolve(outcome);
      };
      const waiting: Waiting = { work, key: this.#keyOf(work.ms), settle };
      const behind = account.queue.findIndex(({ key }) => key > waiting.key);
      account.queue.splice(behind === -1 ? account.queue.length : behind, 0, waiting);
      signal.addEventListener('abort', abort, { once: true });
      this.#serve();
    });
  }

  #accountOf(name: string): Account {
    const known = this.#accounts.get(name);
    const account = known ?? { served: this.#round, queue: [] };
    // Idle accounts accrue no credit.
    if (account.queue.length === 0) account.served = Math.max(account.served, this.#round);
    if (!known) this.#accounts.set(name, account);
    return account;
  }

  /** Gives the free places to those whose turn it is. */
  #serve(): void {
    this.#fill();
    this.#pressed = this.#queues().some(({ length }) => length > 0);
    if (!this.#pressed) this.#lastEnd = undefined;
  }

  #fill(): void {
    while (this.#running.size < this.#options.running) {
      const slot = this.#next();
      if (!slot) return;
      const [account, waiting] = slot;
      const { work } = waiting;
      if (this.#running.size > 0 && this.#now() + work.ms > work.deadline) {
        account.queue.splice(account.queue.indexOf(waiting), 1);
        this.#refused.deadline++;
        waiting.settle(busyFor(lengthOf(account.queue) / this.#speed, 'deadline'));
        continue;
      }
      const free = this.#options.memory.work(work.bytes);
      // What is under way ends soon and makes room.
      if (!free) return;
      account.queue.splice(account.queue.indexOf(waiting), 1);
      this.#round = account.served;
      account.served += work.ms;
      this.#running.add(work);
      waiting.settle({ outcome: 'admitted', leave: this.#place(work, free) });
      this.#forget();
    }
  }

  #next(): readonly [Account, Waiting] | undefined {
    const heavy = [...this.#running].filter((work) => work.heavy).length;
    const heavyToo = heavy < Math.max(1, this.#options.running - 1);
    let next: readonly [Account, Waiting] | undefined;
    for (const account of this.#accounts.values()) {
      const first = account.queue.find(({ work }) => heavyToo || !work.heavy);
      if (first && (!next || account.served < next[0].served)) next = [account, first];
    }
    return next;
  }

  /** Accounts that wait for nothing and were not given more than others. */
  #forget(): void {
    for (const [name, { queue, served }] of this.#accounts)
      if (queue.length === 0 && served <= this.#round) this.#accounts.delete(name);
  }

  /** From one end of work to the next while others wait, the machine gets through the work that ended. */
  #learn(ms: number): void {
    if (this.#lastEnd === undefined) return;
    this.#done = this.#done * stays + ms;
    this.#took = this.#took * stays + (this.#now() - this.#lastEnd);
  }

  #place(work: Work, free: () => void): (done: boolean) => void {
    let inside = true;
    return (done) => {
      if (!inside) return;
      inside = false;
      this.#running.delete(work);
      if (done) this.#learn(work.ms);
      if (this.#pressed) this.#lastEnd = this.#now();
      free();
      this.#serve();
      if (this.#running.size === 0 && !this.#pressed) {
        this.#accounts.clear();
        this.#round = 0;
      }
    };
  }
}

const busyFor = (waitMs: number, why: Busy['why']): Busy => ({
  outcome: 'busy',
  retryAfter: Math.min(60, Math.max(1, Math.ceil(waitMs / 1000))),
  why,
});
