import type { OpeningStep } from './types.ts';

/** What is being opened, for an operator: parts of sentences. */
export function openingText({ network, measured, device, batch, step, steps }: OpeningStep): string {
  if (measured) return `${network} to measure ${measured}, device ${step} of ${steps}`;
  const images = batch === 1 ? 'single images' : `batches of ${batch}`;
  const where = device === undefined ? '' : ` on device ${device}`;
  return `${network} for ${images}${where}, step ${step} of ${steps}`;
}

export const openingSince = (step: OpeningStep): string =>
  `${openingText(step)}, ${Math.round(step.seconds)} s so far`;
