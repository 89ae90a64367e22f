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
type WorkTimes = Readonly<Record<keyof WorkSize, number>>;

const parts = ['source', 'network', 'result'] as const;

/** Decay of what was learnt, per completed job. */
const decay = 7 / 8;

/** A job is heavy if it takes more than this many times as long as a preview. */
const heavyFactor = 4;

/** Initial milliseconds per megapixel, measured on two slow cores. */
const firstGuess: WorkTimes = { source: 12, network: 900, result: 40 };

/** Sums over completed jobs, decaying: of sizes s (megapixels) and times t (milliseconds). */
interface Sums {
  readonly n: number;
  readonly s: number;
  readonly t: number;
  readonly ss: number;
  readonly st: number;
}

/**
 * Megapixels squared: by how much the sizes of completed jobs must differ before their times, and not the first
 * guess, decide what a megapixel takes. Two jobs whose sizes differ by √2 megapixels weigh as much as the guess.
 */
const guessWeight = 1;

/** Milliseconds of a job and of each of its megapixels. */
interface Line {
  readonly fixed: number;
  readonly perMegapixel: number;
}

/**
 * The line through the completed jobs with the least squared error, of which neither part is negative. Where all sizes are
 * alike they do not tell the two apart: then the megapixel takes what was guessed, and the rest is fixed.
 */
function lineThrough({ n, s, t, ss, st }: Sums, guess: number): Line {
  if (n === 0) return { fixed: 0, perMegapixel: guess };
  const perMegapixel = Math.max(
    0,
    (st - (s * t) / n + guessWeight * guess) / (ss - (s * s) / n + guessWeight),
  );
  const fixed = (t - perMegapixel * s) / n;
  if (fixed >= 0) return { fixed, perMegapixel };
  return { fixed: 0, perMegapixel: (st + guessWeight * guess) / (ss + guessWeight) };
}

/**
 * Estimates the duration of jobs without waiting, learnt from completed ones: of each part a fixed time and a time for
 * each megapixel, so that small images, whose times are all fixed, say nothing about large ones.
 */
export class DurationEstimate {
  readonly #guess: WorkTimes;
  readonly #sums: Record<(typeof parts)[number], Sums>;

  readonly #preview: WorkSize | undefined;

  /**
   * `preview`: the smallest usual job; without it nothing is heavy. `known`: milliseconds per megapixel that
   * are measured already.
   */
  constructor(preview?: WorkSize, known: Partial<WorkTimes> = {}) {
    this.#preview = preview;
    this.#guess = { ...firstGuess, ...known };
    const none = (): Sums => ({ n: 0, s: 0, t: 0, ss: 0, st: 0 });
    this.#sums = { source: none(), network: none(), result: none() };
  }

  /** Whether a job of this duration would delay previews noticeably. */
  isHeavy(ms: number): boolean {
    return this.#preview !== undefined && ms > heavyFactor * this.milliseconds(this.#preview);
  }

  milliseconds(size: WorkSize): number {
    return parts.reduce((sum, part) => {
      const { fixed, perMegapixel } = lineThrough(this.#sums[part], this.#guess[part]);
      return sum + fixed + perMegapixel * size[part];
    }, 0);
  }

  learn(size: WorkSize, times: WorkTimes): void {
    for (const part of parts) {
      const [s, t] = [size[part], times[part]];
      const { n, s: sizes, t: durations, ss, st } = this.#sums[part];
      this.#sums[part] = {
        n: n * decay + 1,
        s: sizes * decay + s,
        t: durations * decay + t,
        ss: ss * decay + s * s,
        st: st * decay + s * t,
      };
    }
  }
}
