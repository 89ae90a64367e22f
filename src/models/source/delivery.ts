/** The bytes of a network's published file from `offset` on. */
export interface Delivery {
  /** The offset asked for if the source can resume, else 0. */
  readonly offset: number;
  readonly bytes: AsyncIterable<Uint8Array>;
  /** ETag or date with which a later request can resume this very file. */
  readonly validator?: string;
}

/** What exists of an interrupted download. */
export interface Resume {
  readonly offset: number;
  readonly validator?: string | undefined;
}

/** Opens a source. Rejects with ModelError `MODEL_SOURCE` if it does not have the file. */
export type OpenSource = (resume: Resume, signal: AbortSignal) => Promise<Delivery>;
