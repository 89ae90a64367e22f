import type { Selector } from '../engine/selector.ts';
import type { Embedding, KeptOutput, Pixels, SubjectMask } from '../engine/types.ts';
import { initialPrompt, type NormalisedPrompt } from '../geometry/subjectPrompt.ts';
import { BoundedStore } from '../idempotency/boundedStore.ts';
import { createContentIdentifier } from '../idempotency/hash.ts';
import { contentKey } from '../idempotency/resultStore.ts';
import { SingleFlight } from '../idempotency/singleFlight.ts';
import type { Dimensions } from '../image/types.ts';

interface SelectionCall {
  readonly accountId: string;
  /** The image as it was sent, whose hash is the cache key of its embedding. */
  readonly image: Uint8Array;
  readonly pixels: Pixels;
  readonly prompt: NormalisedPrompt;
  readonly signal: AbortSignal;
}

interface FoundSubject {
  readonly mask: SubjectMask;
  /** The mask of the initial prompt, if the prompt adds to that. */
  readonly firstMask?: SubjectMask;
  /** Whether the image was embedded for this call. */
  readonly embedded: boolean;
  /** Cache key of the image, within its account. */
  readonly imageKey: string;
}

/** What the networks' output for an image depends on, beside its bytes. */
export interface OutputSettings {
  readonly networks: readonly (string | undefined)[];
  /** Of the decoded image and of the result. */
  readonly sizes: readonly Dimensions[];
}

/** Promptable segmentation (SAM 2): finds the subject that points or a box show. */
export interface SubjectSelection {
  /** False where the networks are not installed and may not be downloaded. */
  available(): Promise<boolean>;
  /** Borrows the pixels until the promise settles. */
  find(call: SelectionCall): Promise<FoundSubject>;
  /** The networks' output that was kept for an image. */
  output(imageKey: string, settings: OutputSettings): KeptOutput | undefined;
  keepOutput(imageKey: string, settings: OutputSettings, output: KeptOutput): void;
}

const outputKey = (imageKey: string, { networks, sizes }: OutputSettings): string =>
  JSON.stringify([imageKey, networks, sizes.map(({ width, height }) => [width, height])]);

/** What the store holds: an embedding, an output, or the mask of a prompt. */
type Kept = Pick<Embedding, 'data'> | KeptOutput | SubjectMask;

const maskKey = (imageKey: string, prompt: NormalisedPrompt): string => JSON.stringify([imageKey, prompt]);

interface Bounds {
  /** Seconds for which an embedding is kept; 0: none is. */
  readonly ttlSeconds: number;
  /** Bound of all kept embeddings and outputs together. */
  readonly maxBytes: number;
}

/**
 * Embeds an image once for all prompts of its account: embeddings are kept as long as results are, by the bytes of
 * the image and the size at which it was decoded. Calls that need the same one wait for it. So is the matting networks' last
 * output for the image: a further click on the same subject runs the decoder and the refinement only. Which part of the
 * image that output is of depends on the mask of the initial prompt, which is kept too.
 */
export class CachedSubjectSelection implements SubjectSelection {
  readonly #selector: Selector;
  readonly #ttlMs: number;
  readonly #store: BoundedStore;
  readonly #inFlight = new SingleFlight<Pick<Embedding, 'data'>>();
  readonly #name = createContentIdentifier();

  constructor(selector: Selector, { ttlSeconds, maxBytes }: Bounds) {
    this.#selector = selector;
    this.#ttlMs = ttlSeconds * 1000;
    this.#store = new BoundedStore(maxBytes, (entry) => (entry as Kept).data.length);
  }

  available(): Promise<boolean> {
    return this.#selector.available();
  }

  /** Bytes of all that are kept. */
  get bytes(): number {
    return this.#store.bytes;
  }

  async find({ accountId, image, pixels, prompt, signal }: SelectionCall): Promise<FoundSubject> {
    const content = contentKey(accountId, await this.#name(image, '', {}, { signal }));
    // The embedding of another size is another one: a result must not depend on which came first.
    const key = JSON.stringify([content, pixels.width, pixels.height]);
    let embedded = false;
    const kept = this.#store.get(key) as Pick<Embedding, 'data'> | undefined;
    const embed = async (sharedSignal: AbortSignal) => {
      embedded = true;
      const { data } = await this.#selector.embed(pixels, { signal: sharedSignal });
      this.#keep(key, { data });
      return { data };
    };
    const { data: embedding } = kept ?? (await this.#inFlight.join(key, embed, signal));
    const maskOf = async (given: NormalisedPrompt): Promise<SubjectMask> =>
      (await this.#selector.select({ embedding, ...given }, { signal })).mask;
    const initial = initialPrompt(prompt);
    const initialKey = maskKey(key, initial);
    let firstMask = this.#store.get(initialKey) as SubjectMask | undefined;
    if (!firstMask) {
      firstMask = await maskOf(initial);
      this.#keep(initialKey, firstMask);
    }
    if (initial === prompt) return { mask: firstMask, embedded, imageKey: key };
    return { mask: await maskOf(prompt), firstMask, embedded, imageKey: key };
  }

  output(imageKey: string, settings: OutputSettings): KeptOutput | undefined {
    return this.#store.get(outputKey(imageKey, settings)) as KeptOutput | undefined;
  }

  keepOutput(imageKey: string, settings: OutputSettings, output: KeptOutput): void {
    this.#keep(outputKey(imageKey, settings), output);
  }

  #keep(key: string, value: Kept): void {
    if (this.#ttlMs > 0) this.#store.set(key, value, this.#ttlMs);
  }

  /** Forgets all of them. */
  clear(): void {
    this.#store.clear();
  }
}
