import type { Inputs } from '../../src/cutout/plan.ts';
import type { Dimensions } from '../../src/image/types.ts';

/** What a plan is made from: the header of a JPEG of this size, and no bytes. */
export const planInputs = (size: Dimensions): Inputs => ({
  image: {
    bytes: new Uint8Array(),
    probe: {
      ...size,
      format: 'jpeg',
      orientation: 1,
      colour: 'rgb',
      depth: 8,
      hasAlpha: false,
      convertsProfile: false,
    },
  },
  background: undefined,
});
