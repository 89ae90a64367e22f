import { codedProfile } from '../codePoints.ts';
import { toSrgb } from '../profileConversion.ts';
import type { Dimensions, InputFormat, JobLimits, Probe, Raster } from '../types.ts';
import { avifBytes, decodeAvif } from './decodeAvif.ts';
import { decodeHeic, heicBytes } from './decodeHeic.ts';

/** Whether a format is decoded by `decodeHeif`. */
export const isHeif = (format: InputFormat): format is 'heic' | 'avif' =>
  format === 'heic' || format === 'avif';

/** Upper bound of the bytes that `decodeHeif` takes beside the file, the pixels included. */
export const heifBytes = (probe: Probe, target: Dimensions, file: Uint8Array): number =>
  probe.format === 'heic' ? heicBytes(probe, file) : avifBytes(probe, target, file);

/**
 * Decodes a HEIC or an AVIF, whose decoders are large and young, where they cannot touch the memory of this process, to
 * upright straight RGBA8; what its code points state becomes sRGB. An AVIF is reduced to `target`, a HEIC keeps its size.
 * Throws ImageError `failed_to_read_image` or `timeout`, NoThreadError, or the signal's reason.
 */
export async function decodeHeif(
  file: Uint8Array,
  probe: Probe,
  target: Dimensions,
  limits: JobLimits,
): Promise<Raster> {
  const raster =
    probe.format === 'heic'
      ? await decodeHeic(file, probe, limits)
      : await decodeAvif(file, probe, target, limits);
  const profile = probe.codePoints && codedProfile(probe.codePoints);
  if (profile) await toSrgb(profile)?.raster(raster, limits.signal);
  return raster;
}
