/** Stages of a request, in their order. Named the same in `Server-Timing`, the log, the metrics and the traces. */
export const STAGES = [
  /** Reading and parsing the body. */
  'upload',
  /** Downloading images by address. */
  'fetch',
  /** Setting credits aside. */
  'reserve',
  /** Waiting for a slot. */
  'admission',
  'decode',
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

type StageName = (typeof STAGES)[number];

/** Milliseconds of some stages, in the order of the stages. */
export type Stages = Readonly<Partial<Record<StageName, number>>>;

/** `start` as `performance.now()` counts; both in milliseconds. */
export interface Span {
  readonly stage: StageName;
  readonly start: number;
  readonly ms: number;
}

/** What is said of a request in the log, in metrics and in traces. No image data, no keys, no addresses. */
export interface RequestAttributes {
  /** Asked for. */
  size?: string;
  /** `300x200 png`: of the image that was sent. */
  input?: string;
  inputPixels?: number;
  inputBytes?: number;
  /** `300x200 png`: of the answer. */
  result?: string;
  resultPixels?: number;
  resultBytes?: number;
  /** Kind of subject that was found. */
  type?: string;
  /** Credits, as people read them. */
  charged?: string;
  payment?: 'free' | 'preview' | 'full';
  /** An earlier call's result was given again. */
  replayed?: boolean;
  /** Runs of the network. */
  runs?: number;
  /** Id of its trace, where there is one. */
  trace?: string;
  /** Code of the answered error, why it was refused, and what was said of it. */
  error?: string;
  reason?: string;
  detail?: string;
  /** Why a download failed: what its caller is not told. */
  download?: string;
  /** Of a sign-in that came to nothing. */
  problem?: string;
  /** Who was signed in, where no key said so. */
  account?: string;
  /** Outcome of a payment's event. */
  purchase?: string;
  /** Id of an image handed in. */
  image?: string;
}

/** Collects what the parts of the program that a request passes have to say of it. One for each request. */
export class RequestTelemetry {
  readonly attributes: RequestAttributes = {};
  readonly #spans: Span[] = [];

  /** In the order in which they ended. */
  get spans(): readonly Span[] {
    return this.#spans;
  }

  add(attributes: RequestAttributes): void {
    Object.assign(this.attributes, attributes);
  }

  /** Stages that lay one behind the other, of which the last has just ended. */
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
