/** What makes a piece of work long, in megapixels. */
export interface WorkSize {
  /** That are decoded, or read over, of the source. */
  readonly source: number;
  /** Of the network's input. */
  readonly network: number;
  /** Of the result. */
  readonly result: number;
}

/** Milliseconds of the three parts of a piece of work. */
type WorkTimes = WorkSize;

const parts = ['source', 'network', 'result'] as const;

/** How much of what was learnt stays when a piece of work is done. */
const stays = 7 / 8;

/** Heavy work takes more than so many times a preview's. */
const heavy = 4;

/** Milliseconds a megapixel before anything is learnt, on two slow cores. */
const firstGuess: WorkTimes = { source: 12, network: 900, result: 40 };

/**
 * How long work takes by itself, learnt from work that is done: milliseconds a megapixel of each part, as decaying sums, so
 * that small images with their fixed costs count little.
 */
export class DurationEstimate {
  readonly #times: Record<(typeof parts)[number], number>;
  readonly #sizes: Record<(typeof parts)[number], number> = { source: 1, network: 1, result: 1 };

  readonly #preview: WorkSize | undefined;

  /**
   * `preview`: the least that is usually asked for; nothing is heavy without. `known`: milliseconds a megapixel that are
   * measured already.
   */
  constructor(preview?: WorkSize, known: Partial<WorkTimes> = {}) {
    this.#preview = preview;
    this.#times = { ...firstGuess, ...known };
  }

  /** Work that keeps a preview waiting for long. */
  isHeavy(ms: number): boolean {
    return this.#preview !== undefined && ms > heavy * this.milliseconds(this.#preview);
  }

  milliseconds(size: WorkSize): number {
    return parts.reduce((sum, part) => sum + (size[part] * this.#times[part]) / this.#sizes[part], 0);
  }

  learn(size: WorkSize, times: WorkTimes): void {
    for (const part of parts) {
      this.#times[part] = this.#times[part] * stays + times[part];
      this.#sizes[part] = this.#sizes[part] * stays + size[part];
    }
  }
}
