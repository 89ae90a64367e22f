import sharp from 'sharp';
import { ImageError, imageErrorFrom } from './errors.ts';
import { runJob } from './job.ts';
import type { Dimensions, Patience, Probe, Raster } from './types.ts';

/**
 * Decodes a background picture upright to exactly `canvas`: scaled, larger or smaller, to cover it with its
 * aspect ratio kept, centred, the rest cut off; of the same size it stays as it is. Straight RGBA8. Colours
 * become sRGB.
 *
 * Throws ImageError `failed_to_read_image` or `timeout`, or the signal's reason.
 */
export async function decodeCover(
  bytes: Uint8Array,
  probe: Probe,
  canvas: Dimensions,
  patience: Patience = {},
): Promise<Raster> {
  const { width, height } = canvas;
  try {
    const image = sharp(bytes, { limitInputPixels: probe.width * probe.height, autoOrient: true })
      .resize({ width, height, fit: 'cover', position: 'centre', kernel: 'lanczos3' })
      .toColourspace('srgb')
      .ensureAlpha()
      .raw();
    const { data } = await runJob(image, patience);
    if (data.length === width * height * 4)
      return { data: new Uint8Array(data.buffer, data.byteOffset, data.length), width, height };
  } catch (error) {
    patience.signal?.throwIfAborted();
    throw imageErrorFrom(error);
  }
  throw new ImageError('failed_to_read_image', 'The picture does not have the size its header announces.');
}
