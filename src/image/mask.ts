import sharp, { type Sharp } from 'sharp';
import { forConversion } from './embeddedProfile.ts';
import { decodeHeif, isHeif } from './heif/decodeHeif.ts';
import { decodePixels } from './job.ts';
import { openUpright } from './orientation.ts';
import type { Dimensions, JobLimits, Probe } from './types.ts';

/** One byte for each pixel, upright, row-major without padding. */
interface Mask extends Dimensions {
  readonly data: Uint8Array;
}

const opaque = 255;

/** Opens the file; a HEIC or AVIF is decoded once. */
async function openMask(bytes: Uint8Array, probe: Probe, jobLimits: JobLimits): Promise<() => Sharp> {
  if (isHeif(probe.format)) {
    const { data, width, height } = await decodeHeif(bytes, probe, probe, jobLimits);
    return () => sharp(data, { raw: { width, height, channels: 4 } });
  }
  const { bytes: file, ignoreIcc } = forConversion(bytes, probe);
  return () => openUpright(file, probe, { ignoreIcc });
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
  const file = await openMask(bytes, probe, jobLimits);
  const { width, height } = target;
  const plane = async (of: (image: Sharp) => Sharp): Promise<Mask> => {
    // The kernel has no negative lobes: no gray where the mask is black or white.
    const open = () =>
      of(file()).resize({ width, height, fit: 'fill', kernel: 'linear' }).raw({ depth: 'uchar' });
    return {
      data: await decodePixels(open, probe, { width, height, channels: 1 }, jobLimits),
      width,
      height,
    };
  };
  if (probe.hasAlpha) {
    const alpha = await plane((image) => image.ensureAlpha().extractChannel('alpha'));
    if (alpha.data.some((value) => value < opaque)) return alpha;
  }
  return plane((image) => image.removeAlpha().toColourspace('b-w'));
}

/** Whether the proportions agree to a pixel of the mask each way, as those of results do, whose sides round down. */
export const hasShapeOf = (image: Dimensions, mask: Dimensions): boolean =>
  Math.abs(mask.width * image.height - mask.height * image.width) <= image.width + image.height;

/** Longest side in pixels at which a mask is used; larger ones are reduced to it. */
const longestSide = 2048;

export function maskSize({ width, height }: Dimensions): Dimensions {
  const scale = Math.min(1, longestSide / Math.max(width, height));
  const side = (full: number) => Math.max(1, Math.round(full * scale));
  return { width: side(width), height: side(height) };
}
