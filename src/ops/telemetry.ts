/** Stages of a request, in order. The same names appear in `Server-Timing`, the log, the metrics and the traces. */
export const stageNames = [
  /** Reading and parsing the body. */
  'upload',
  /** Downloading images by address. */
  'fetch',
  /** Waiting for a slot of the scheduler. */
  'admission',
  'decode',
  /** Reserving credits. */
  'reserve',
  /** Finding the subject that points or a box show. */
  'select',
  /** Waiting for a worker of the engine. */
  'queue',
  'prepare',
  'infer',
  'subject',
  'matte',
  'compose',
  'encode',
  /** Charging. */
  'settle',
] as const;

type StageName = (typeof stageNames)[number];

/** Milliseconds of some stages, in the order of the stages. */
export type Stages = Readonly<Partial<Record<StageName, number>>>;

/** `start` as in `performance.now()`; both in milliseconds. */
export interface Span {
  readonly stage: StageName;
  readonly start: number;
  readonly ms: number;
}

/** Attributes of a request for log, metrics and traces. No image data, no keys, no addresses. */
export interface RequestAttributes {
  /** Names of the fields that were ignored, as in `X-Ignored-Fields`. */
  ignored?: string;
  /** The size that was asked for. */
  size?: string;
  /** The image that was sent, `300x200 png`. */
  input?: string;
  inputPixels?: number;
  inputBytes?: number;
  /** What the request said about where the subject is. */
  guidance?: 'mask' | 'points' | 'box';
  /** Images encoded to find what points or a box show: 0 where that was kept from an earlier request. */
  encodings?: number;
  /** The image of the answer, `300x200 png`. */
  result?: string;
  resultPixels?: number;
  resultBytes?: number;
  /** Type of subject that was found. */
  type?: string;
  /** Credits, formatted for people. */
  charged?: string;
  payment?: 'free' | 'preview' | 'full';
  /** Another answer carries the charge of the result. */
  replayed?: boolean;
  /** The result was made by another request, whose attributes say what that took: input, type, runs. */
  shared?: boolean;
  runs?: number;
  /** What came of the second network's look at the image; `none`: it was not asked. */
  second?: 'none' | 'declined' | 'taken';
  /** The chance that a person has to look at the result, as in `X-Uncertainty-Score`. */
  uncertainty?: number;
  trace?: string;
  /** Code of the error that was answered, the reason of a refusal, and the detail. */
  error?: string;
  reason?: string;
  detail?: string;
  /** Why a download failed; not disclosed to the client. */
  download?: string;
  /** Why a sign-in failed. */
  problem?: string;
  /** The account that was signed in, if no key identified one. */
  account?: string;
  /** Outcome of a payment event. */
  purchase?: string;
  /** Id of an image that was handed in. */
  image?: string;
}

/** Collects spans and attributes of one request from the parts of the program that handle it. */
export class RequestTelemetry {
  readonly attributes: RequestAttributes = {};
  readonly #spans: Span[] = [];

  /** The spans so far, in the order in which they ended. */
  get spans(): readonly Span[] {
    return this.#spans;
  }

  /** What each stage took so far, in the order of the stages. */
  get stages(): Stages {
    const took = (stage: StageName) => this.#spans.filter((span) => span.stage === stage);
    const ran = stageNames.filter((stage) => took(stage).length > 0);
    return Object.fromEntries(ran.map((stage) => [stage, took(stage).reduce((sum, { ms }) => sum + ms, 0)]));
  }

  add(attributes: RequestAttributes): void {
    Object.assign(this.attributes, attributes);
  }

  /** Adds consecutive stages, of which the last has just ended. */
  ended(stages: Stages): void {
    const all = Object.entries(stages) as [StageName, number][];
    let start = performance.now() - all.reduce((sum, [, ms]) => sum + ms, 0);
    for (const [stage, ms] of all) {
      this.#spans.push({ stage, start, ms });
      start += ms;
    }
  }

  /** Measures `work`, whether or not it fails. */
  async timed<T>(stage: StageName, work: () => Promise<T>): Promise<T> {
    const start = performance.now();
    try {
      return await work();
    } finally {
      this.#spans.push({ stage, start, ms: performance.now() - start });
    }
  }
}
