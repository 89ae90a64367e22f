import type { OpeningStep } from './types.ts';

/** What is being opened, for an operator: parts of sentences. */
export const openingText = ({ network, device, batch, step, steps }: OpeningStep): string =>
  `${network} for ${batch === 1 ? 'single images' : `batches of ${batch}`} on device ${device}, step ${step} of ${steps}`;

export const openingSince = (step: OpeningStep): string =>
  `${openingText(step)}, ${Math.round(step.seconds)} s so far`;
