import sharp, { type Sharp } from 'sharp';
import { forConversion } from './embeddedProfile.ts';
import { ImageError, imageErrorFrom } from './errors.ts';
import { decodeHeif, isHeif } from './heif/decodeHeif.ts';
import { runJob } from './job.ts';
import type { Dimensions, JobLimits, Probe } from './types.ts';

/** One byte for each pixel, upright, row-major without padding. */
interface Mask extends Dimensions {
  readonly data: Uint8Array;
}

const opaque = 255;

/** Opens the file; a HEIC or AVIF is decoded once. */
async function openMask(bytes: Uint8Array, probe: Probe, jobLimits: JobLimits): Promise<() => Sharp> {
  if (isHeif(probe.format)) {
    const { data, width, height } = await decodeHeif(bytes, probe, jobLimits);
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

/**
 * Whether a mask has the proportions of an image, to a pixel of the mask in each direction: results of this service, which
 * round both sides down, have them.
 */
export const hasShapeOf = (image: Dimensions, mask: Dimensions): boolean =>
  Math.abs(mask.width * image.height - mask.height * image.width) <= image.width + image.height;

/** Longest side in pixels at which a mask is used; larger ones are reduced to it. */
const longestSide = 2048;

/** The size at which a mask is decoded. */
export function maskSize({ width, height }: Dimensions): Dimensions {
  const scale = Math.min(1, longestSide / Math.max(width, height));
  const side = (full: number) => Math.max(1, Math.round(full * scale));
  return { width: side(width), height: side(height) };
}
