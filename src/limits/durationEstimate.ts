/** Milliseconds that encoding a megapixel takes at first, measured on two cores. */
const encodingGuess = { auto: 8, png: 8, jpg: 8, zip: 8, webp: 55, 'lossless webp': 170, avif: 150 } as const;

/** What a job's result is encoded as. */
type Encoding = keyof typeof encodingGuess;

/**
 * Milliseconds that decoding a megapixel takes at first: one of noise, measured on two cores, and what others leave of them;
 * assumed for TIFF and GIF.
 */
const decodingGuess = {
  'jpeg source': 12,
  'progressive source': 20,
  'png source': 12,
  'webp source': 20,
  'avif source': 110,
  'heic source': 200,
  'tiff source': 12,
  'gif source': 12,
} as const;

/** An image that a job decodes. */
interface DecodedSize {
  readonly megapixels: number;
  readonly coding: keyof typeof decodingGuess;
}

/** Size of a job in megapixels, which, with the encoding of its result, determines its duration. */
export interface WorkSize {
  /** Every image that is decoded: the source, and a mask and a background. */
  readonly decoded: readonly DecodedSize[];
  /** Megapixels of the network's input. */
  readonly network: number;
  /** Megapixels that are refined and composed, or a bound of them. */
  readonly result: number;
  /** Megapixels that were encoded, known when the job is done; absent: as many as `result`. */
  readonly encoded?: number;
  readonly encoding: Encoding;
}

/** Parts of a job whose times are learnt; decoding and encoding separately for each format. */
type Part = DecodedSize['coding'] | 'network' | 'result' | Encoding;

/** Milliseconds of the four parts of a job. */
interface WorkTimes {
  /** Decoding everything. */
  readonly decode: number;
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
 * A job is heavy if it takes more than this many times as long as a preview, or decoding for it, which holds a core beside
 * the networks of others, more than that part of one.
 */
const heavyFactor = 2;
const heavyDecoding = 0.5;

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

/**
 * The line through the completed jobs with the least squared error, of which neither part is negative: milliseconds of a job
 * and of each of its megapixels. Where all sizes are alike they do not tell the two apart: then the megapixel takes what was
 * guessed, and the rest is fixed.
 */
function lineThrough({ n, s, t, ss, st }: Sums, guess: number) {
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
    return this.milliseconds(size) > heavyFactor * preview || this.#decoding(size) > heavyDecoding * preview;
  }

  milliseconds(size: WorkSize): number {
    const { network, result, encoding } = size;
    return (
      this.#decoding(size) +
      this.#partOf('network', network) +
      this.#partOf('result', result) +
      this.#partOf(encoding, result)
    );
  }

  learn({ decoded, network, result, encoded = result, encoding }: WorkSize, times: WorkTimes): void {
    // What each of several images took is not known.
    const [image, ...others] = decoded;
    if (image && others.length === 0) this.#learnPart(image.coding, image.megapixels, times.decode);
    this.#learnPart('network', network, times.network);
    this.#learnPart('result', result, times.result);
    this.#learnPart(encoding, encoded, times.encode);
  }

  #decoding({ decoded }: WorkSize): number {
    return decoded.reduce((sum, { coding, megapixels }) => sum + this.#partOf(coding, megapixels), 0);
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
