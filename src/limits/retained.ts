/** `work`, done at the first call only. */
export function once<T>(work: () => T): () => T | undefined {
  let done = false;
  return () => {
    if (done) return undefined;
    done = true;
    return work();
  };
}

/** Something that its owner and others hold. */
export interface Retained<T> {
  /** The owner lets go. Idempotent, as the functions that `retain` returns. */
  readonly end: () => T | undefined;
  /** Holds it until the returned function is called, even if the owner ends before. */
  readonly retain: () => () => T | undefined;
}

/** `free` is called when the owner and all who retained it have let go; the last one gets what it returns. */
export function retained<T>(free: () => T): Retained<T> {
  let references = 0;
  const retain = () => {
    references += 1;
    return once(() => {
      references -= 1;
      return references === 0 ? free() : undefined;
    });
  };
  return { end: retain(), retain };
}
