import sharp, { type Sharp } from 'sharp';
import { forConversion } from './embeddedProfile.ts';
import { ImageError, imageErrorFrom } from './errors.ts';
import { decodeHeic } from './heif/decodeHeic.ts';
import { runJob } from './job.ts';
import type { Dimensions, JobLimits, Probe } from './types.ts';

/** One byte for each pixel, upright, row-major without padding. */
export interface Mask extends Dimensions {
  readonly data: Uint8Array;
}

const opaque = 255;

/** Opens the file; a HEIC is decoded once. */
async function openMask(bytes: Uint8Array, probe: Probe, jobLimits: JobLimits): Promise<() => Sharp> {
  if (probe.format === 'heic') {
    const { data, width, height } = await decodeHeic(bytes, probe, jobLimits);
    return () => sharp(data, { raw: { width, height, channels: 4 } });
  }
  const { bytes: file, ignoreIcc } = forConversion(bytes, probe);
  return () => sharp(file, { limitInputPixels: probe.width * probe.height, autoOrient: true, ignoreIcc });
}

async function channel(
  image: Sharp,
  probe: Dimensions,
  { width, height }: Dimensions,
  which: 'gray' | 'alpha',
  jobLimits: JobLimits,
): Promise<Uint8Array> {
  const plane =
    which === 'alpha'
      ? image.ensureAlpha().extractChannel('alpha')
      : image.removeAlpha().toColourspace('b-w');
  // The kernel has no negative lobes: no gray where the mask is black or white.
  const { data } = await runJob(
    plane.resize({ width, height, fit: 'fill', kernel: 'linear' }).raw({ depth: 'uchar' }),
    probe,
    jobLimits,
  );
  if (data.length !== width * height)
    throw new ImageError('failed_to_read_image', 'The image does not have the size its header announces.');
  return new Uint8Array(data.buffer, data.byteOffset, data.length);
}

/**
 * Decodes a mask to `target`, which is at most its size: its alpha where any pixel of it is not opaque, otherwise its
 * lightness. Throws ImageError `failed_to_read_image` or `timeout`, or the signal's reason.
 */
export async function decodeMask(
  bytes: Uint8Array,
  probe: Probe,
  target: Dimensions,
  jobLimits: JobLimits = {},
): Promise<Mask> {
  const open = await openMask(bytes, probe, jobLimits);
  try {
    if (probe.hasAlpha) {
      const alpha = await channel(open(), probe, target, 'alpha', jobLimits);
      if (alpha.some((value) => value < opaque)) return { data: alpha, ...target };
    }
    const gray = await channel(open(), probe, target, 'gray', jobLimits);
    return { data: gray, ...target };
  } catch (error) {
    jobLimits.signal?.throwIfAborted();
    throw imageErrorFrom(error);
  }
}
