import { z } from 'zod';

/** 2^(n / 8), as numbers: the last digit of a computed power differs between versions of Node.js. */
const FACTORS = [
  1,
  1.0905077326652577,
  1.189207115002721,
  1.2968395546510096,
  Math.SQRT2,
  1.5422108254079407,
  1.681792830507429,
  1.8340080864093424,
] as const;

/** Returns the factor 2^(exponent / 8) of a channel. Powers of two are exact. */
function factorOf(exponent: number): number {
  const octave = Math.floor(exponent / FACTORS.length);
  return (FACTORS[exponent - octave * FACTORS.length] ?? Number.NaN) * 2 ** octave;
}

/** Bias corrections are counted in this fraction of the output channel's step. */
export const BIAS_STEPS = 32;

const entrySchema = z.strictObject({
  /** Real value of one step of the 8-bit values. */
  scale: z.number().positive(),
  /** 8-bit value that represents 0. */
  zeroPoint: z.number().int().min(0).max(255),
  /** Channel c has the scale `scale` * 2^(channels[c] / 8); without this list all channels have `scale`. */
  channels: z.array(z.number().int()).optional(),
  /** Finer than 8 bits: the sum of `count` 8-bit values, in steps of `scale`, is the value minus `low`. */
  steps: z.strictObject({ count: z.number().int().min(2).max(16), low: z.number() }).optional(),
});

/** models/<name>/int8.json: the result of calibration (decision 0204). */
export const tableSchema = z.object({
  /** SHA-256 of the published file it was made for. */
  sourceSha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Names of the convolutions that stay in floats. */
  float: z.array(z.string()),
  /** Keyed by the tensor's name in the published file. */
  tensors: z.record(z.string(), entrySchema),
  /** Keyed by the name of the convolution: correction of its bias, in 1/32 of a step of each output channel. */
  bias: z.record(z.string(), z.array(z.number().int())),
});

export type QuantisationTable = Readonly<z.infer<typeof tableSchema>>;
export type TensorEntry = Readonly<z.infer<typeof entrySchema>>;

/** Returns the real value of one step, per channel. Throws a RangeError if the table has another number of channels. */
export function scalesOf(entry: TensorEntry, channels: number): Float64Array {
  if (entry.channels && entry.channels.length !== channels) {
    throw new RangeError(`the table has ${entry.channels.length} channels where the network has ${channels}`);
  }
  return Float64Array.from({ length: channels }, (_, c) => entry.scale * factorOf(entry.channels?.[c] ?? 0));
}
