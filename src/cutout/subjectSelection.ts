import type { Selector } from '../engine/selector.ts';
import type { Embedding, NetworkOutput, Pixels, SubjectMask } from '../engine/types.ts';
import { initialPrompt, type NormalisedPrompt } from '../geometry/subjectPrompt.ts';
import { BoundedStore } from '../idempotency/boundedStore.ts';
import { contentKey } from '../idempotency/resultStore.ts';
import { SingleFlight } from '../idempotency/singleFlight.ts';
import type { Dimensions } from '../image/types.ts';

interface SelectionCall {
  readonly accountId: string;
  /** Name of the image as it was sent; undefined where nothing is cached. */
  readonly imageId: string | undefined;
  readonly pixels: Pixels;
  readonly prompt: NormalisedPrompt;
  readonly signal: AbortSignal;
}

interface FoundSubject {
  readonly mask: SubjectMask;
  /** The mask of the initial prompt, if the prompt adds to that. */
  readonly firstMask?: SubjectMask;
  readonly embedded: boolean;
  /** Cache key of the image at this size, within its account; undefined where nothing is cached. */
  readonly imageKey: string | undefined;
}

/** The key of the matting networks' output for an image; `sizes`: of the decoded image, of the result and of the network's input. */
export const outputKey = (
  imageKey: string,
  {
    networks,
    sizes,
  }: { readonly networks: readonly (string | undefined)[]; readonly sizes: readonly Dimensions[] },
): string => JSON.stringify([imageKey, networks, sizes.map(({ width, height }) => [width, height])]);

type EmbeddingData = Pick<Embedding, 'data'>;

interface Bounds {
  /** Seconds for which an embedding is cached; 0: none is. */
  readonly ttlSeconds: number;
  /** Bound of all that is cached. */
  readonly maxBytes: number;
}

/** Shares of the bound, in proportion to the sizes: an embedding has 7.2 MB, an output up to 4.2 MB, a mask 66 kB. */
const shares = { embeddings: 0.6, outputs: 0.35, masks: 0.05 } as const;

/**
 * Promptable segmentation (SAM 2): finds the subject that points or a box show. Embeds an image once for all prompts of its account: embeddings are cached as long as results are, by the name of
 * the image and the size at which it was decoded. Calls that need the same one wait for it. Which part of an image a cached
 * output of the matting networks is of depends on the mask of the initial prompt, which is cached too.
 */
export class SubjectSelection {
  /**
   * The matting networks' last output for each image of which a subject was selected, by `outputKey`: a further click on the
   * same subject runs the decoder of points and the refinement only.
   */
  readonly outputs: BoundedStore<NetworkOutput>;
  readonly #selector: Selector;
  readonly #caches: boolean;
  readonly #embeddings: BoundedStore<EmbeddingData>;
  /** Masks of initial prompts. */
  readonly #masks: BoundedStore<SubjectMask>;
  readonly #inFlight = new SingleFlight<EmbeddingData>();

  constructor(selector: Selector, { ttlSeconds, maxBytes }: Bounds) {
    this.#selector = selector;
    const ttlMs = ttlSeconds * 1000;
    this.#caches = ttlMs > 0;
    const cache = <T extends { readonly data: Uint8Array }>(share: number) =>
      new BoundedStore<T>(share * maxBytes, ({ data }) => data.length, ttlMs);
    this.#embeddings = cache(shares.embeddings);
    this.#masks = cache(shares.masks);
    this.outputs = cache(shares.outputs);
  }

  /** False where the networks are not installed and may not be downloaded. */
  available(): Promise<boolean> {
    return this.#selector.available();
  }

  /** Waits until the networks are downloaded and loaded. */
  ready(signal: AbortSignal): Promise<void> {
    return this.#selector.ready(signal);
  }

  get bytes(): number {
    return this.#embeddings.bytes + this.#masks.bytes + this.outputs.bytes;
  }

  /** Borrows the pixels until the promise settles. */
  async find({ accountId, imageId, pixels, prompt, signal }: SelectionCall): Promise<FoundSubject> {
    // The embedding of another size is another one: a result must not depend on which came first.
    const imageKey =
      imageId !== undefined && this.#caches
        ? JSON.stringify([contentKey(accountId, imageId), pixels.width, pixels.height])
        : undefined;
    const own: { embedding?: Promise<Embedding> } = {};
    const embed = async (embedSignal: AbortSignal): Promise<EmbeddingData> => {
      own.embedding = this.#selector.embed(pixels, { signal: embedSignal });
      const { data } = await own.embedding;
      return { data };
    };
    let embedding: Uint8Array;
    try {
      ({ data: embedding } = await this.#embedding(imageKey, embed, signal));
    } finally {
      // After this call was aborted, others may wait for what reads its pixels.
      await own.embedding?.catch(() => {});
    }
    const embedded = own.embedding !== undefined;
    const maskOf = async (given: NormalisedPrompt): Promise<SubjectMask> =>
      (await this.#selector.select({ embedding, ...given }, { signal })).mask;
    const initial = initialPrompt(prompt);
    const firstMask = await this.#initialMask(imageKey, initial, maskOf);
    if (initial === prompt) return { mask: firstMask, embedded, imageKey };
    return { mask: await maskOf(prompt), firstMask, embedded, imageKey };
  }

  async #embedding(
    imageKey: string | undefined,
    embed: (signal: AbortSignal) => Promise<EmbeddingData>,
    signal: AbortSignal,
  ): Promise<EmbeddingData> {
    if (imageKey === undefined) return embed(signal);
    const cached = this.#embeddings.get(imageKey);
    if (cached) return cached;
    const embedAndCache = async (sharedSignal: AbortSignal) => {
      const made = await embed(sharedSignal);
      this.#embeddings.set(imageKey, made);
      return made;
    };
    return this.#inFlight.join(imageKey, embedAndCache, signal);
  }

  async #initialMask(
    imageKey: string | undefined,
    initial: NormalisedPrompt,
    maskOf: (prompt: NormalisedPrompt) => Promise<SubjectMask>,
  ): Promise<SubjectMask> {
    if (imageKey === undefined) return maskOf(initial);
    const key = JSON.stringify([imageKey, initial]);
    const cached = this.#masks.get(key);
    if (cached) return cached;
    const made = await maskOf(initial);
    this.#masks.set(key, made);
    return made;
  }

  /** Forgets all of it. */
  clear(): void {
    this.#embeddings.clear();
    this.#masks.clear();
    this.outputs.clear();
  }
}
