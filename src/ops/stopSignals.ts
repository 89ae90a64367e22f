import { UserError } from '../errors.ts';

/** `stop` on the first SIGTERM or SIGINT and `end` on the second, until the returned function is called. */
export function onStopSignal(
  stop: (signal: NodeJS.Signals) => void,
  end: () => void = () => process.exit(1),
): () => void {
  let asked = false;
  const handle = (signal: NodeJS.Signals) => {
    if (asked) return end();
    asked = true;
    stop(signal);
  };
  process.on('SIGTERM', handle);
  process.on('SIGINT', handle);
  return () => {
    process.off('SIGTERM', handle);
    process.off('SIGINT', handle);
  };
}

/** Aborted with a UserError of this sentence by the first stop signal, until `release` is called. */
export function abortedByStop(sentence = 'Stopped.'): {
  readonly signal: AbortSignal;
  readonly release: () => void;
} {
  const stopping = new AbortController();
  const release = onStopSignal(() => stopping.abort(new UserError(sentence)));
  return { signal: stopping.signal, release };
}
