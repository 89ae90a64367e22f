import { systemSentence } from './requirements.js';
import { SetupError } from './step.js';

/** Throws a SetupError on a machine that cannot run Cutout, before anything is downloaded. */
export function checkSystem() {
  const sentence = systemSentence();
  if (sentence) throw new SetupError(sentence);
}
