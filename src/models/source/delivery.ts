/** The bytes of a network's published file from `offset` on. */
export interface Delivery {
  /** Where the bytes begin: the offset asked for if the source can resume, else 0. */
  readonly offset: number;
  readonly bytes: AsyncIterable<Uint8Array>;
  /** ETag or date that lets a later request resume this very file. */
  readonly validator?: string;
}

/** What is already here of an interrupted download. */
export interface Resume {
  readonly offset: number;
  readonly validator?: string | undefined;
}

/** Opens a source. Rejects with ModelError `model_source` when it has not what was asked for. */
export type OpenSource = (resume: Resume, signal: AbortSignal) => Promise<Delivery>;
