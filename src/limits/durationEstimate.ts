/** Size of a job in megapixels, which determines its duration. */
export interface WorkSize {
  /** Megapixels of the source that are decoded or read. */
  readonly source: number;
  /** Megapixels of the network's input. */
  readonly network: number;
  /** Megapixels of the result. */
  readonly result: number;
}

/** Milliseconds of the three parts of a job. */
type WorkTimes = WorkSize;

const parts = ['source', 'network', 'result'] as const;

/** Decay of what was learnt, per completed job. */
const decay = 7 / 8;

/** A job is heavy if it takes more than this many times as long as a preview. */
const heavyFactor = 4;

/** Initial milliseconds per megapixel, measured on two slow cores. */
const firstGuess: WorkTimes = { source: 12, network: 900, result: 40 };

/**
 * Estimates the duration of jobs without waiting, learnt from completed ones: milliseconds per megapixel of
 * each part, as decaying sums, so that the fixed costs of small images weigh little.
 */
export class DurationEstimate {
  readonly #times: Record<(typeof parts)[number], number>;
  readonly #sizes: Record<(typeof parts)[number], number> = { source: 1, network: 1, result: 1 };

  readonly #preview: WorkSize | undefined;

  /**
   * `preview`: the smallest usual job; without it nothing is heavy. `known`: milliseconds per megapixel that
   * are measured already.
   */
  constructor(preview?: WorkSize, known: Partial<WorkTimes> = {}) {
    this.#preview = preview;
    this.#times = { ...firstGuess, ...known };
  }

  /** Whether a job of this duration would delay previews noticeably. */
  isHeavy(ms: number): boolean {
    return this.#preview !== undefined && ms > heavyFactor * this.milliseconds(this.#preview);
  }

  milliseconds(size: WorkSize): number {
    return parts.reduce((sum, part) => sum + (size[part] * this.#times[part]) / this.#sizes[part], 0);
  }

  learn(size: WorkSize, times: WorkTimes): void {
    for (const part of parts) {
      this.#times[part] = this.#times[part] * decay + times[part];
      this.#sizes[part] = this.#sizes[part] * decay + size[part];
    }
  }
}
