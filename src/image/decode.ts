import sharp, { type OutputInfo, type SharpOptions } from 'sharp';
import { ImageError, imageErrorFrom } from './errors.ts';
import type { Dimensions, Patience, Probe, Raster } from './types.ts';

/**
 * libjpeg warnings behind which the picture is whole: stray bytes between segments or after the scan, header
 * fields out of their range. Everything else that libjpeg warns of is damage.
 */
const HARMLESS = /extraneous bytes before marker|Invalid SOS parameters|unknown JFIF revision/;

function pipeline(bytes: Uint8Array, probe: Probe, target: Dimensions, failOn: SharpOptions['failOn']) {
  const reduced = target.width !== probe.width || target.height !== probe.height;
  let image = sharp(bytes, {
    ...(failOn && { failOn }),
    limitInputPixels: probe.width * probe.height,
    autoOrient: true,
    ignoreIcc: !probe.convertsProfile,
  });
  // libvips reads no profile of 16-bit gray; of 8-bit gray it does.
  if (probe.convertsProfile && probe.colour === 'gray' && probe.depth === 16) {
    image = image.pipelineColourspace('b-w');
  }
  // Reading at a smaller scale (JPEG, WebP) is allowed here alone: the pixels are resampled anyway.
  if (reduced) image = image.resize({ ...target, fit: 'fill', kernel: 'lanczos3' });
  return image.toColourspace('srgb').ensureAlpha().raw();
}

/**
 * Decodes to an upright straight RGBA8 raster of its own ArrayBuffer. RGB values stay as they are stored (16 bit:
 * the high byte) and belong to `probe.icc`; CMYK and gray become sRGB, through the embedded profile where there is
 * one. Alpha of the source is kept; of an animation, the first frame.
 *
 * `target` is `probe`'s size (bit-exact) or less (`decodeSize`). Peak memory beside the file: 4 bytes a pixel of
 * `target`; an orientation other than 1 adds up to 4 a pixel of the unrotated picture at target size, a progressive
 * JPEG its coefficients (3 to 6 a pixel), an interlaced PNG the whole picture (3 to 8).
 *
 * Throws ImageError `failed_to_read_image` for truncated and damaged files, `timeout`, or the signal's reason.
 */
export async function decode(
  bytes: Uint8Array,
  probe: Probe,
  target: Dimensions,
  { signal, timeoutSeconds = 0 }: Patience = {},
): Promise<Raster> {
  if (target.width > probe.width || target.height > probe.height) {
    throw new RangeError('decode never enlarges: target is larger than the picture');
  }
  signal?.throwIfAborted();
  const attempt = async (failOn: SharpOptions['failOn']) =>
    await pipeline(bytes, probe, target, failOn)
      .timeout({ seconds: timeoutSeconds })
      .toBuffer({ resolveWithObject: true });

  let result: { data: Buffer; info: OutputInfo };
  try {
    result = await attempt('warning').catch((error: unknown) => {
      if (!(error instanceof Error && HARMLESS.test(error.message))) throw error;
      signal?.throwIfAborted();
      return attempt('error');
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw imageErrorFrom(error);
  }
  signal?.throwIfAborted();

  const { data, info } = result;
  const { width, height } = target;
  if (info.width !== width || info.height !== height || data.length !== width * height * 4) {
    throw new ImageError('failed_to_read_image', 'The picture does not have the size its header announces.');
  }
  return { data: new Uint8Array(data.buffer, data.byteOffset, data.length), width, height };
}
