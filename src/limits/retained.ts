/** `work`, done at the first call only. */
export function once<T>(work: () => T): () => T | undefined {
  let done = false;
  return () => {
    if (done) return undefined;
    done = true;
    return work();
  };
}

/** `free` is called when the owner and all who retained it have let go; the last one gets what it returns. */
export function retained<T>(free: () => T) {
  let references = 0;
  /** Holds it until the returned function is called, even if the owner ends before. */
  const retain = () => {
    references += 1;
    return once(() => {
      references -= 1;
      return references === 0 ? free() : undefined;
    });
  };
  /** `end`: the owner lets go. Idempotent, as the functions that `retain` returns. */
  return { end: retain(), retain };
}
