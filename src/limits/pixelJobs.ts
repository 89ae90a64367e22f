/** A library begins with pixels and cannot be stopped; `ms`: what it may take at most. Returns what to call at its end. */
export type JobWatch = (ms: number) => () => void;

interface PixelJobsOptions {
  /** Jobs that run at the same time. */
  readonly threads: number;
  /** Called for each job that becomes overdue, with how many are. */
  readonly onOverdue?: (overdue: number) => void;
  /** Called once, when more than half of the threads are held by overdue jobs. */
  readonly onStuck: (overdue: number) => void;
}

/** A time is counted in so many parts: a pause of the machine, in which libraries stand still too, counts as one of them. */
const ticksOf = 10;

/**
 * Jobs that decode or encode pixels, each timed against what its size should take. Every part of a file that multiplies
 * work is bounded before it is decoded (docs/threat-model.md); this holds where a bound was forgotten. A library cannot be
 * interrupted, so an overdue job is lost capacity until it ends.
 */
export class PixelJobs {
  readonly #options: PixelJobsOptions;
  readonly #overdue = new Map<symbol, string>();
  #stuck = false;

  constructor(options: PixelJobsOptions) {
    this.#options = options;
  }

  /** Jobs that take longer than they may. */
  get overdue(): number {
    return this.#overdue.size;
  }

  isOverdue(account: string): boolean {
    return [...this.#overdue.values()].includes(account);
  }

  watch(account: string): JobWatch {
    return (ms) => {
      const job = Symbol(account);
      let ticks = 0;
      const timer = setInterval(() => {
        ticks += 1;
        if (ticks < ticksOf) return;
        clearInterval(timer);
        this.#markOverdue(job, account);
      }, ms / ticksOf).unref();
      return () => {
        clearInterval(timer);
        this.#overdue.delete(job);
      };
    };
  }

  #markOverdue(job: symbol, account: string): void {
    this.#overdue.set(job, account);
    this.#options.onOverdue?.(this.#overdue.size);
    if (this.#stuck || this.#overdue.size * 2 <= this.#options.threads) return;
    this.#stuck = true;
    this.#options.onStuck(this.#overdue.size);
  }
}
