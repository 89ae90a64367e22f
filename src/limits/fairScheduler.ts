import type { MemoryBudget } from './memoryBudget.ts';
import { type Busy, busyFor } from './retryAfter.ts';

export interface FairSchedulerOptions {
  /** Jobs that run at the same time. */
  readonly running: number;
  /** Longest wait for a slot in milliseconds; Infinity: no bound. */
  readonly waitMs: number;
  readonly memory: MemoryBudget;
  /** Running jobs that take much longer than they may, so that their slots are lost; absent: never any. */
  readonly overdue?: () => number;
}

/** A job that asks for a slot. */
export interface Job {
  readonly account: string;
  /** Estimated duration without waiting, in milliseconds. */
  readonly ms: number;
  readonly bytes: number;
  /** Takes much longer than a preview. Heavy jobs leave one of several slots to others, so that previews find one. */
  readonly heavy: boolean;
  /** Time by which it must be done, as `now` counts; Infinity: none. */
  readonly deadline: number;
}

export type FairSchedulerOutcome =
  | Busy
  /** Needs more memory than there can ever be. */
  | { readonly outcome: 'too_large' }
  | {
      readonly outcome: 'admitted';
      /**
       * Frees slot and memory; may be called repeatedly. `done`: the job was completed; `waited`: milliseconds for which it
       * waited for others while it had the slot.
       */
      readonly release: (done: boolean, waited?: number) => void;
    };

interface WaitingJob {
  readonly job: Job;
  /** The lowest of an account runs first (ageing). */
  readonly virtualDeadline: number;
  readonly resolve: (outcome: FairSchedulerOutcome) => void;
}

interface Account {
  /**
   * Milliseconds of work, counted like `#virtualTime`: what was estimated when a job was admitted, and what it took beyond that
   * once it ended, so that work whose length no estimate sees is paid for by those who come with it.
   */
  virtualTime: number;
  /** How many times their estimates its jobs took: a decaying mean. */
  slowdown: number;
  /** When it last asked for a slot or left one. */
  seen: number;
  /** Its waiting jobs by virtual deadline, the first one first. */
  readonly queue: WaitingJob[];
}

/** A job yields to shorter ones of its account that arrive within `ageingFactor` × the difference in length. */
const ageingFactor = 4;

/** Weight of earlier measurements of the service rate after one more completed job. */
const decay = 15 / 16;

/** The jobs of an account that lately took more than this many times what was estimated count as heavy. */
const slowFactor = 2;

/** Weight of its last job in that. */
const lastJobWeight = 1 / 2;

/** Milliseconds for which an account without jobs is still taken to be there. */
const seenMs = 5000;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
const lengthOf = (queue: readonly WaitingJob[]): number => sum(queue.map(({ job }) => job.ms));

/**
 * Fair scheduler in front of memory and processors (decision 0150). A bounded number of jobs runs at a
 * time. The next one is chosen by
 *
 * - account: the account with the lowest virtual time goes first (start-time fair queueing), so that no
 *   account waits for the backlog of another;
 * - length: within an account, a shorter job goes before longer ones that came a little earlier. Ageing guarantees
 *   that every job runs. Heavy jobs, and those of an account whose jobs take much longer than was estimated, leave one
 *   slot to others, and those of one account two while there is another account.
 *
 * The wait is predicted from the work ahead and the measured service rate of the machine: a job that would wait too
 * long, or beyond its deadline, is refused at once. Where the prediction was wrong, it is refused when it has waited for
 * `waitMs`.
 */
export class FairScheduler {
  readonly #options: FairSchedulerOptions;
  readonly #now: () => number;
  readonly #accounts = new Map<string, Account>();
  readonly #running = new Set<Job>();
  /** Virtual time of the account whose job was admitted last, before that job. */
  #virtualTime = 0;
  /** Work completed under continuous load, and the time it took: milliseconds, decaying. */
  #completedMs = 5000;
  #elapsedMs = 5000;
  /** Jobs are waiting. */
  #backlogged = false;
  /** When a job last ended during the current backlog; undefined: none has. */
  #lastEnd: number | undefined;
  /** Shortest recent job in milliseconds, heavy ones left out; undefined: none yet. */
  #shortestMs: number | undefined;

  /** `now` returns milliseconds. */
  constructor(options: FairSchedulerOptions, now: () => number) {
    this.#options = options;
    this.#now = now;
    options.memory.onFreed(() => this.#dispatch());
  }

  /** `waitingMs`: of queued work; `serviceRate`: milliseconds of work completed per millisecond under continuous load. */
  get stats() {
    const queues = this.#queues();
    return {
      running: this.#running.size,
      waiting: sum(queues.map(({ length }) => length)),
      waitingMs: sum(queues.map(lengthOf)),
      serviceRate: this.#serviceRate,
    };
  }

  /** Early refusal, before an upload: defined if even the shortest recent job would be refused. */
  refusal(account: string, deadline: number): Busy | undefined {
    if (this.#shortestMs === undefined) return undefined;
    return this.#predictBusy({ account, ms: this.#shortestMs, bytes: 0, heavy: false, deadline });
  }

  /** Rejects with the signal's reason if it is aborted while waiting. */
  async acquire(job: Job, signal: AbortSignal): Promise<FairSchedulerOutcome> {
    signal.throwIfAborted();
    // A flood of heavy jobs must not make light ones look as long.
    if (!job.heavy) {
      const shortest = this.#shortestMs ?? job.ms;
      this.#shortestMs = Math.min(job.ms, shortest + (job.ms - shortest) / 16);
    }
    if (job.bytes > this.#options.memory.maxWork) return { outcome: 'too_large' };
    return this.#predictBusy(job) ?? this.#enqueue(job, signal);
  }

  get #serviceRate(): number {
    return this.#completedMs / this.#elapsedMs;
  }

  #queues(): readonly (readonly WaitingJob[])[] {
    return [...this.#accounts.values()].map(({ queue }) => queue);
  }

  /** Milliseconds before this job: of what is running half, and of every other account as much as of its own. */
  #workAhead({ account, ms }: Job): number {
    const own = this.#accounts.get(account)?.queue ?? [];
    const virtualDeadline = this.#virtualDeadlineOf(ms);
    const before = lengthOf(own.filter((other) => other.virtualDeadline <= virtualDeadline));
    const others = this.#queues()
      .filter((queue) => queue !== own)
      .map((queue) => Math.min(lengthOf(queue), before + ms));
    return before + sum(others) + sum([...this.#running].map((job) => job.ms / 2));
  }

  /** Defined if the job would wait too long or miss its deadline. */
  #predictBusy(job: Job): Busy | undefined {
    // An idle machine accepts a job that seems hopeless: only by running it can the estimate be corrected.
    if (this.#running.size === 0) return undefined;
    const usable = this.#usableShare;
    if (usable === 0) return busyFor(Number.POSITIVE_INFINITY, 'queue');
    const rate = this.#serviceRate * usable;
    const wait = this.#isFreeFor(job) ? 0 : this.#workAhead(job) / rate;
    const late = this.#now() + Math.max(job.ms, wait + job.ms / rate) > job.deadline;
    if (!late && wait <= this.#options.waitMs) return undefined;
    return busyFor(wait, late ? 'deadline' : 'queue');
  }

  /** Slots that no overdue job holds, of all. */
  get #usableShare(): number {
    const { running, overdue = () => 0 } = this.#options;
    return Math.max(0, running - overdue()) / running;
  }

  /** Whether the job leaves slots to others: its size says so, or what its account's jobs took lately. */
  #isHeavy({ heavy, account }: Job): boolean {
    return heavy || (this.#accounts.get(account)?.slowdown ?? 1) > slowFactor;
  }

  /** Whether the job may have one of the free slots. */
  #mayRun(job: Job): boolean {
    if (!this.#isHeavy(job)) return true;
    const { running } = this.#options;
    const heavy = [...this.#running].filter((other) => this.#isHeavy(other));
    if (heavy.length >= Math.max(1, running - 1)) return false;
    const own = heavy.filter(({ account }) => account === job.account);
    return own.length < Math.max(1, running - 2) || this.#isAlone(job.account);
  }

  /** Whether the account has jobs, or had one lately. */
  #isPresent(name: string, { queue, seen }: Account): boolean {
    const running = [...this.#running].some(({ account }) => account === name);
    return running || queue.length > 0 || seen >= this.#now() - seenMs;
  }

  #isAlone(name: string): boolean {
    for (const [other, account] of this.#accounts)
      if (other !== name && this.#isPresent(other, account)) return false;
    return true;
  }

  /** Whether there is a slot that no waiting job would take first. */
  #isFreeFor(job: Job): boolean {
    if (this.#running.size >= this.#options.running) return false;
    if (!this.#backlogged) return true;
    // A slot that heavy jobs leave to others, while all that wait are heavy.
    return (
      this.#mayRun(job) &&
      this.#queues().every((queue) => queue.every((waiting) => !this.#mayRun(waiting.job)))
    );
  }

  #virtualDeadlineOf(ms: number): number {
    return this.#now() + ageingFactor * ms;
  }

  #enqueue(job: Job, signal: AbortSignal): Promise<FairSchedulerOutcome> {
    return new Promise((resolve, reject) => {
      const account = this.#accountOf(job.account);
      const leave = () => {
        account.queue.splice(account.queue.indexOf(waiting), 1);
        // Jobs behind it may fit where it did not.
        this.#dispatch();
      };
      const abort = () => {
        clearTimeout(timer);
        reject(signal.reason);
        leave();
      };
      let timer: NodeJS.Timeout | undefined;
      const waiting: WaitingJob = {
        job,
        virtualDeadline: this.#virtualDeadlineOf(job.ms),
        resolve: (outcome) => {
          clearTimeout(timer);
          signal.removeEventListener('abort', abort);
          resolve(outcome);
        },
      };
      const behind = account.queue.findIndex(
        ({ virtualDeadline }) => virtualDeadline > waiting.virtualDeadline,
      );
      account.queue.splice(behind === -1 ? account.queue.length : behind, 0, waiting);
      signal.addEventListener('abort', abort, { once: true });
      this.#dispatch();
      if (!account.queue.includes(waiting) || this.#options.waitMs === Number.POSITIVE_INFINITY) return;
      timer = setTimeout(() => {
        waiting.resolve(busyFor(this.#workAhead(job) / this.#serviceRate, 'queue'));
        leave();
      }, this.#options.waitMs);
    });
  }

  #accountOf(name: string): Account {
    const known = this.#accounts.get(name);
    const account = known ?? { virtualTime: this.#virtualTime, slowdown: 1, seen: 0, queue: [] };
    account.seen = this.#now();
    // Idle accounts accrue no credit.
    if (account.queue.length === 0) account.virtualTime = Math.max(account.virtualTime, this.#virtualTime);
    if (!known) this.#accounts.set(name, account);
    return account;
  }

  /** Gives free slots to waiting jobs, and records whether any still wait. */
  #dispatch(): void {
    this.#admitAvailable();
    this.#backlogged = this.#queues().some(({ length }) => length > 0);
    if (!this.#backlogged) this.#lastEnd = undefined;
  }

  #admitAvailable(): void {
    while (this.#running.size < this.#options.running) {
      const selected = this.#select();
      if (!selected) return;
      const [account, waiting] = selected;
      const { job } = waiting;
      if (this.#running.size > 0 && this.#now() + job.ms > job.deadline) {
        account.queue.splice(account.queue.indexOf(waiting), 1);
        waiting.resolve(busyFor(lengthOf(account.queue) / this.#serviceRate, 'deadline'));
        continue;
      }
      const free = this.#options.memory.reserveJob(job.bytes);
      // Running jobs will free memory soon.
      if (!free) return;
      account.queue.splice(account.queue.indexOf(waiting), 1);
      this.#virtualTime = account.virtualTime;
      account.virtualTime += job.ms;
      this.#running.add(job);
      waiting.resolve({ outcome: 'admitted', release: this.#releaseOnce(job, free) });
      this.#dropIdleAccounts();
    }
  }

  #select(): readonly [Account, WaitingJob] | undefined {
    let next: readonly [Account, WaitingJob] | undefined;
    for (const account of this.#accounts.values()) {
      const first = account.queue.find(({ job }) => this.#mayRun(job));
      if (first && (!next || account.virtualTime < next[0].virtualTime)) next = [account, first];
    }
    return next;
  }

  /** Removes accounts that are gone and whose virtual time is not ahead of the others'. */
  #dropIdleAccounts(): void {
    for (const [name, account] of this.#accounts)
      if (account.virtualTime <= this.#virtualTime && !this.#isPresent(name, account))
        this.#accounts.delete(name);
  }

  /** Measures throughput: between two ends of jobs under load, the machine has completed the job that ended. */
  #measureSpeed(ms: number): void {
    if (this.#lastEnd === undefined) return;
    this.#completedMs = this.#completedMs * decay + ms;
    this.#elapsedMs = this.#elapsedMs * decay + (this.#now() - this.#lastEnd);
  }

  #releaseOnce(job: Job, free: () => void): (done: boolean, waited?: number) => void {
    const started = this.#now();
    let released = false;
    return (done, waited = 0) => {
      if (released) return;
      released = true;
      this.#running.delete(job);
      if (done) this.#measureSpeed(job.ms);
      if (this.#backlogged) this.#lastEnd = this.#now();
      const account = this.#accountOf(job.account);
      const took = this.#now() - started - waited;
      account.virtualTime += Math.max(0, took - job.ms);
      const more = took / Math.max(1, job.ms) - account.slowdown;
      // A job that was cancelled early says nothing of how long the account's jobs take.
      if (done || more > 0) account.slowdown += more * lastJobWeight;
      free();
      this.#dispatch();
      if (this.#running.size === 0 && !this.#backlogged) {
        this.#accounts.clear();
        this.#virtualTime = 0;
      }
    };
  }
}
