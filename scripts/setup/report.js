import { SetupError } from './step.js';

/** Says why set-up ended: the sentence of a SetupError, everything of what is a bug; the process will exit with 1. */
export function reportFailure(error) {
  console.error(error instanceof SetupError ? `\n${error.message}\n` : error);
  process.exitCode = 1;
}
