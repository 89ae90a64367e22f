import type { NetworkOutput } from '../engine/types.ts';
import { BoundedStore } from '../idempotency/boundedStore.ts';
import type { Dimensions } from '../image/types.ts';

/** What the matting networks' output for an image depends on, beside its bytes. */
interface OutputSettings {
  readonly networks: readonly (string | undefined)[];
  /** The sizes of the decoded image, of the result and of the network's input. */
  readonly sizes: readonly Dimensions[];
}

const outputKey = (imageKey: string, { networks, sizes }: OutputSettings): string =>
  JSON.stringify([imageKey, networks, sizes.map(({ width, height }) => [width, height])]);

/**
 * The matting networks' last output for each image: a further click on the same subject runs the decoder of points and
 * the refinement only.
 */
export class OutputCache {
  readonly #store: BoundedStore<NetworkOutput>;

  constructor(maxBytes: number, ttlMs: number) {
    this.#store = new BoundedStore(maxBytes, ({ data }) => data.length, ttlMs);
  }

  get bytes(): number {
    return this.#store.bytes;
  }

  get(imageKey: string, settings: OutputSettings): NetworkOutput | undefined {
    return this.#store.get(outputKey(imageKey, settings));
  }

  set(imageKey: string, settings: OutputSettings, output: NetworkOutput): void {
    this.#store.set(outputKey(imageKey, settings), output);
  }

  clear(): void {
    this.#store.clear();
  }
}
