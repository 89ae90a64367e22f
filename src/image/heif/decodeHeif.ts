import { codedProfile } from '../codePoints.ts';
import { toSrgb } from '../profileConversion.ts';
import type { InputFormat, JobLimits, Probe, Raster } from '../types.ts';
import { avifBytes, decodeAvif } from './decodeAvif.ts';
import { decodeHeic, heicBytes } from './decodeHeic.ts';

/** Whether a format is decoded by `decodeHeif`. */
export const isHeif = (format: InputFormat): format is 'heic' | 'avif' =>
  format === 'heic' || format === 'avif';

/** Upper bound of the bytes that `decodeHeif` takes beside the file, the pixels included. */
export const heifBytes = (probe: Probe, file: Uint8Array): number =>
  probe.format === 'heic' ? heicBytes(probe, file) : avifBytes(probe, file);

/**
 * Decodes a HEIC or an AVIF, whose decoders are large and young, where they cannot touch the memory of this process, to
 * upright straight RGBA8; what its code points state becomes sRGB. Throws ImageError `failed_to_read_image` or `timeout`, NoThreadError,
 * or the signal's reason.
 */
export async function decodeHeif(file: Uint8Array, probe: Probe, limits: JobLimits): Promise<Raster> {
  const decode = probe.format === 'heic' ? decodeHeic : decodeAvif;
  const raster = await decode(file, probe, limits);
  const profile = probe.codePoints && codedProfile(probe.codePoints);
  if (profile) await toSrgb(profile)?.raster(raster, limits.signal);
  return raster;
}
