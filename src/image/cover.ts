import sharp from 'sharp';
import { forDecoder } from './container/check.ts';
import { ImageError, imageErrorFrom } from './errors.ts';
import { fromSrgb } from './icc.ts';
import { runJob } from './job.ts';
import type { Dimensions, JobLimits, Probe, Raster } from './types.ts';

/**
 * Decodes a background image upright to exactly `canvas`: scaled, larger or smaller, to cover it with its
 * aspect ratio kept, centred, the rest cut off; of the same size it stays as it is. Straight RGBA8. Colours
 * become sRGB, or those of the profile `icc` that the image on top of it has: with the very same profile they
 * stay as they are, else they go through sRGB.
 *
 * Throws ImageError `failed_to_read_image` or `timeout`, or the signal's reason.
 */
export async function decodeCover(
  bytes: Uint8Array,
  probe: Probe,
  canvas: Dimensions,
  { icc, ...jobLimits }: JobLimits & { readonly icc?: Uint8Array } = {},
): Promise<Raster> {
  const { width, height } = canvas;
  const same = icc !== undefined && probe.icc !== undefined && Buffer.compare(icc, probe.icc) === 0;
  try {
    const limitInputPixels = probe.width * probe.height;
    const image = sharp(forDecoder(bytes, probe.format), {
      limitInputPixels,
      autoOrient: true,
      ignoreIcc: same,
    })
      .resize({ width, height, fit: 'cover', position: 'centre', kernel: 'lanczos3' })
      .toColourspace('srgb')
      .ensureAlpha()
      .raw();
    const { data } = await runJob(image, jobLimits);
    if (data.length === width * height * 4) {
      const raster = { data: new Uint8Array(data.buffer, data.byteOffset, data.length), width, height };
      if (icc && !same) await fromSrgb(icc)?.raster(raster, jobLimits.signal);
      return raster;
    }
  } catch (error) {
    jobLimits.signal?.throwIfAborted();
    throw imageErrorFrom(error);
  }
  throw new ImageError('failed_to_read_image', 'The image does not have the size its header announces.');
}
