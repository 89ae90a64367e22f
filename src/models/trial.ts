import type { Engine } from '../engine/engine.ts';
import { networkOutput } from '../engine/networkOutput.ts';
import type { NetworkSpec, Pixels } from '../engine/types.ts';
import { ModelError } from './error.ts';
import type { Manifest } from './manifest.ts';

/** Result of a run that looks at what a network gives. */
export interface Trial {
  readonly output: Manifest['output'];
  /** Milliseconds of a run. */
  readonly runMs: number;
}

const sigmoid = (value: number) => 1 / (1 + Math.exp(-value));

/** Values 0 and 1 after the sigmoid, with some room for rounding. */
const LEAST_OF_UNIT = sigmoid(-0.04);
const MOST_OF_UNIT = sigmoid(1.05);

/** An output whose values differ by less is the same everywhere. */
const LEAST_RANGE = 2 / 255;

/** Returns what a value was before the sigmoid. */
const logitOf = (value: number) => {
  const share = Math.min(0.998, Math.max(0.002, value));
  return Math.log(share / (1 - share)).toFixed(1);
};

/**
 * Runs a network on an image and checks that its output, after the activation, is a matte: finite, in 0..1, not the
 * same everywhere. The output is read through the sigmoid, which tells values in 0..1 from logits in one run.
 *
 * @param stated what the manifest will say of the output; undefined: found out
 * @param because why that is thought; undefined where a person said it
 * @param pixels are written to. Rejects with ModelError `MODEL_CHECK`, or EngineError if the network cannot be run or
 * gives infinity or NaN.
 */
export async function tryNetwork(
  engine: Pick<Engine, 'load' | 'matte' | 'unload'>,
  spec: NetworkSpec,
  stated: Manifest['output'] | undefined,
  because: string | undefined,
  pixels: Pixels,
): Promise<Trial> {
  await engine.load({ ...spec, output: 'logit' });
  const { values, inferMs } = await networkOutput(engine, spec.name, pixels);
  await engine.unload();
  let least = 1;
  let most = 0;
  for (const value of values) {
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  const refuse = (text: string) => new ModelError('MODEL_CHECK', `The network gives ${text}`);
  if (most - least < LEAST_RANGE) {
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
