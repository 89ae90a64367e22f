import type { Engine } from '../engine/engine.ts';
import type { NetworkSpec, Pixels } from '../engine/types.ts';
import { ModelError } from './error.ts';
import type { Manifest } from './manifest.ts';

/** Result of a run that looks at what a network gives. */
export interface Trial {
  readonly output: Manifest['output'];
  /** Milliseconds of a run. */
  readonly runMs: number;
}

/** Alpha in 0..255 of values 0 and 1 after the sigmoid, with some room for rounding: -0.04 and 1.05. */
const LEAST_OF_UNIT = 126;
const MOST_OF_UNIT = 189;

/** Returns what alpha was before the sigmoid. */
const logitOf = (alpha: number) => {
  const share = Math.min(254.5, Math.max(0.5, alpha)) / 255;
  return Math.log(share / (1 - share)).toFixed(1);
};

/**
 * Runs a network on an image and checks that its output, after the activation, is a matte: finite, in 0..1, not the
 * same everywhere. The output is read through the sigmoid, which tells values in 0..1 from logits in one run.
 *
 * @param stated what the manifest will say of the output; undefined: found out
 * @param because why that is thought; undefined where a person said it
 * @param pixels are written to. Rejects with ModelError `model_check`, or EngineError if the network cannot be run or
 * gives infinity or NaN.
 */
export async function tryNetwork(
  engine: Pick<Engine, 'load' | 'matte' | 'unload'>,
  spec: NetworkSpec,
  stated: Manifest['output'] | undefined,
  because: string | undefined,
  pixels: Pixels,
): Promise<Trial> {
  // Trained on mattes: the engine then leaves alpha as the network gives it.
  await engine.load({ ...spec, output: 'logit', trainedOn: 'mattes' });
  const { width, height } = pixels;
  const { inferMs } = await engine.matte(pixels, {
    network: spec.name,
    width,
    height,
    hiddenColour: 'keep',
    refine: 'off',
  });
  await engine.unload();
  let least = 255;
  let most = 0;
  for (let at = 3; at < pixels.data.length; at += 4) {
    const alpha = pixels.data[at] ?? 0;
    least = Math.min(least, alpha);
    most = Math.max(most, alpha);
  }
  const refuse = (text: string) => new ModelError('model_check', `The network gives ${text}`);
  if (most - least < 2) {
    throw refuse(
      `the same value (about ${logitOf(most)}) everywhere in the image. Check the normalisation, or give an image with a subject (--photo).`,
    );
  }
  const inUnit = least >= LEAST_OF_UNIT && most <= MOST_OF_UNIT;
  const found = inUnit ? 'probability' : 'logit';
  const range = `values from ${logitOf(least)} to ${logitOf(most)}`;
  if (stated === 'probability' && !inUnit) {
    throw refuse(
      `${range}, and a probability is between 0 and 1. Check the normalisation, or give --output logit.`,
    );
  }
  if (stated === 'logit' && inUnit && because !== undefined) {
    throw refuse(
      `${range}, which look like probabilities, although ${because}. Pass --output probability or --output logit.`,
    );
  }
  return { output: stated ?? found, runMs: inferMs };
}
