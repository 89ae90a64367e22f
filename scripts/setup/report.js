import { SetupError } from './step.js';

/** Reports why set-up ended: the sentence of a SetupError, everything about other errors; the exit status will be 1. */
export function reportFailure(error) {
  console.error(error instanceof SetupError ? `\n${error.message}\n` : error);
  process.exitCode = 1;
}
