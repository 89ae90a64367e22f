/** Milliseconds that encoding a megapixel takes at first, measured on two cores. */
const encodingGuess = { auto: 8, png: 8, jpg: 8, zip: 8, webp: 55, 'lossless webp': 170, avif: 150 } as const;

/** What a job's result is encoded as. */
type Encoding = keyof typeof encodingGuess;

/** Milliseconds that decoding a megapixel takes at first: of HEIC, by WebAssembly on two busy cores, and of anything else. */
const decodingGuess = { source: 12, 'heic source': 200 } as const;

type Decoding = keyof typeof decodingGuess;

/** Size of a job in megapixels, which, with the encoding of its result, determines its duration. */
export interface WorkSize {
  /** Megapixels of the source that are decoded or read. */
  readonly source: number;
  /** What the source is coded as. */
  readonly decoding: Decoding;
  /** Megapixels of the network's input. */
  readonly network: number;
  /** Megapixels that are refined and composed, or a bound of them. */
  readonly result: number;
  /** Megapixels that were encoded, known when the job is done; absent: as many as `result`. */
  readonly encoded?: number;
  readonly encoding: Encoding;
}

/** Parts of a job whose times are learnt; decoding and encoding separately for each format. */
type Part = Decoding | 'network' | 'result' | Encoding;

/** Milliseconds of the four parts of a job. */
interface WorkTimes {
  readonly source: number;
  readonly network: number;
  /** Refining and composing. */
  readonly result: number;
  readonly encode: number;
}

/** Decay of what was learnt, per completed job. */
const decay = 7 / 8;

/** A part that took longer than this many times what was expected stalled: it is learnt as no longer than that. */
const stallFactor = 10;

/** Milliseconds that a part is expected to take at least, where it is decided whether it stalled. */
const leastExpected = 10;

/**
 * A job is heavy if it takes more than this many times as long as a preview, or decoding its HEIC, which holds a core beside
 * the networks of others, more than that part of one.
 */
const heavyFactor = 4;
const heavyHeic = 0.5;

/** Initial milliseconds per megapixel, measured on two slow cores. */
const firstGuess: Readonly<Record<Part, number>> = {
  ...decodingGuess,
  network: 900,
  result: 32,
  ...encodingGuess,
};

/** Sums over completed jobs, decaying: of sizes s (megapixels) and times t (milliseconds). */
interface Sums {
  readonly n: number;
  readonly s: number;
  readonly t: number;
  readonly ss: number;
  readonly st: number;
}

const nothing: Sums = { n: 0, s: 0, t: 0, ss: 0, st: 0 };

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
 * each megapixel, so that small images, whose times are all fixed, say nothing about large ones, and of encoding for
 * each encoding, of which the slowest takes twenty times as long as the fastest.
 */
export class DurationEstimate {
  readonly #guess: Readonly<Record<Part, number>>;
  readonly #sums = new Map<Part, Sums>();
  readonly #preview: WorkSize | undefined;

  /**
   * `preview`: the smallest usual job; without it nothing is heavy. `network`: milliseconds per megapixel of the network's
   * first run; one that stalled counts as `stallFactor` times the guess.
   */
  constructor(preview?: WorkSize, network = firstGuess.network) {
    this.#preview = preview;
    this.#guess = { ...firstGuess, network: Math.min(network, stallFactor * firstGuess.network) };
  }

  /** Whether a job of this size would delay previews noticeably. */
  isHeavy(size: WorkSize): boolean {
    if (this.#preview === undefined) return false;
    const preview = this.milliseconds(this.#preview);
    const heic = size.decoding === 'heic source' ? this.#partOf(size.decoding, size.source) : 0;
    return this.milliseconds(size) > heavyFactor * preview || heic > heavyHeic * preview;
  }

  milliseconds({ source, decoding, network, result, encoding }: WorkSize): number {
    return (
      this.#partOf(decoding, source) +
      this.#partOf('network', network) +
      this.#partOf('result', result) +
      this.#partOf(encoding, result)
    );
  }

  learn({ source, decoding, network, result, encoded = result, encoding }: WorkSize, times: WorkTimes): void {
    this.#learnPart(decoding, source, times.source);
    this.#learnPart('network', network, times.network);
    this.#learnPart('result', result, times.result);
    this.#learnPart(encoding, encoded, times.encode);
  }

  #partOf(part: Part, megapixels: number): number {
    const { fixed, perMegapixel } = lineThrough(this.#sums.get(part) ?? nothing, this.#guess[part]);
    return fixed + perMegapixel * megapixels;
  }

  #learnPart(part: Part, megapixels: number, taken: number): void {
    const { n, s, t, ss, st } = this.#sums.get(part) ?? nothing;
    const expected = Math.max(this.#partOf(part, megapixels), leastExpected);
    const ms = Math.min(taken, stallFactor * expected);
    this.#sums.set(part, {
      n: n * decay + 1,
      s: s * decay + megapixels,
      t: t * decay + ms,
      ss: ss * decay + megapixels * megapixels,
      st: st * decay + megapixels * ms,
    });
  }
}
