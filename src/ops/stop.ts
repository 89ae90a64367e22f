/**
 * Calls `stop` on the first SIGTERM or SIGINT and ends the process at once on the second, until the returned function
 * is called.
 */
export function onStopSignal(stop: (signal: NodeJS.Signals) => void): () => void {
  let asked = false;
  const handle = (signal: NodeJS.Signals) => {
    if (asked) process.exit(1);
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
