import sharp, { type Sharp } from 'sharp';
import { forDecoder } from './container/check.ts';
import { hasHarmlessFaults } from './container/jpeg.ts';
import { maxPixelBytes } from './container/tiff.ts';
import { forConversion } from './embeddedProfile.ts';
import { decodeHeif, heifBytes, isHeif } from './heif/decodeHeif.ts';
import { decodePixels } from './job.ts';
import { displayP3, rgbProfile, srgbTransfer } from './matrixProfile.ts';
import { openUpright } from './orientation.ts';
import { toSrgb } from './profileConversion.ts';
import type { Dimensions, InputFormat, JobLimits, Probe, Raster } from './types.ts';

/** With a second lobe, Lanczos makes alpha 1 where nothing is and 254 where the subject is opaque. */
const kernelFor = ({ hasAlpha }: Pick<Probe, 'hasAlpha'>): 'cubic' | 'lanczos3' =>
  hasAlpha ? 'cubic' : 'lanczos3';

let conversion: ReturnType<typeof toSrgb>;

function displayP3ToSrgb(): ReturnType<typeof toSrgb> {
  const profile = conversion ? undefined : rgbProfile(displayP3, srgbTransfer);
  if (profile) conversion = toSrgb(profile);
  return conversion;
}

/** The libvips pipeline of `decode`. */
export function openImage(bytes: Uint8Array, probe: Omit<Probe, 'icc'>, target: Dimensions): Sharp {
  const reduced = target.width !== probe.width || target.height !== probe.height;
  // The values of RGB stay as they are: its profile is not looked at.
  const source = probe.convertsProfile
    ? forConversion(bytes, probe)
    : { bytes: forDecoder(bytes, probe.format), ignoreIcc: true };
  let image = openUpright(source.bytes, probe, {
    // Truncated files fail either way; `warning` also refuses JPEGs with too little data for their header.
    failOn: probe.format === 'jpeg' && hasHarmlessFaults(bytes) ? 'error' : 'warning',
    ignoreIcc: source.ignoreIcc,
  });
  // libvips reads profiles of 8-bit gray, but not of 16-bit gray.
  if (probe.convertsProfile && probe.colour === 'gray' && probe.depth === 16) {
    image = image.pipelineColourspace('b-w');
  }
  // Reading at a reduced scale (JPEG, WebP) is allowed only here, because the pixels are resampled anyway.
  if (reduced) image = image.resize({ ...target, fit: 'fill', kernel: kernelFor(probe) });
  return image.toColourspace('srgb').ensureAlpha().raw();
}

/** An image that is decoded already, reduced to `target`. */
const reducedRaster = ({ data, width, height }: Raster, target: Dimensions, probe: Probe): Sharp =>
  sharp(data, { raw: { width, height, channels: 4 } })
    .resize({ ...target, fit: 'fill', kernel: kernelFor(probe) })
    .raw();

/** Bytes for each pixel of the file; none for other formats. */
type FormatBytes = Readonly<Partial<Record<InputFormat, number>>>;

/** Upper bound of the bytes that decoding takes beside the file, the raster included. */
export function decodeBytes(probe: Probe, target: Dimensions, file: Uint8Array): number {
  const { format, progressive, orientation, hasAlpha, width, height } = probe;
  if (isHeif(format)) return heifBytes(probe, target, file) + target.width * target.height * 4.6;
  // Two bytes for each coefficient, of up to four components.
  const several: FormatBytes = { jpeg: probe.colour === 'cmyk' ? 8 : 6, png: 4 };
  const whole: FormatBytes = { webp: 7, tiff: maxPixelBytes, gif: 8 };
  const turned = orientation === 1 ? 0 : hasAlpha ? 4 : 3;
  const source = (whole[format] ?? 0) + (progressive ? (several[format] ?? 0) : 0) + turned;
  return width * height * source + target.width * target.height * 4.6;
}

/**
 * Decodes to an upright straight RGBA8 raster in an ArrayBuffer of its own. RGB values are unchanged (16 bit:
 * the high byte) and belong to `probe.icc`; CMYK and gray become sRGB, through the embedded profile if there
 * is one. Alpha of the source is kept. Of an animation the first frame is decoded.
 *
 * `target` is the size in `probe` (bit-exact) or less (`decodeSize`). Peak memory beside the file, at full
 * size: 4.6 bytes per pixel, 4 of them the raster. In addition per pixel: 3 (4 with alpha) for an orientation
 * other than 1 or an interlaced PNG, 3 to 8 for the coefficients of a JPEG in several scans, 7 for a WebP.
 *
 * Throws ImageError `failed_to_read_image` for truncated and damaged files, `timeout`, or the signal's
 * reason.
 */
export async function decode(
  bytes: Uint8Array,
  probe: Probe,
  target: Dimensions,
  jobLimits: JobLimits = {},
): Promise<Raster> {
  if (target.width > probe.width || target.height > probe.height) {
    throw new RangeError('decode never enlarges: target is larger than the image');
  }
  const decoded = isHeif(probe.format) ? await decodeHeif(bytes, probe, target, jobLimits) : undefined;
  if (decoded && decoded.width === target.width && decoded.height === target.height) return decoded;
  const open = () => (decoded ? reducedRaster(decoded, target, probe) : openImage(bytes, probe, target));
  const { width, height } = target;
  const data = await decodePixels(open, probe, { width, height, channels: 4 }, jobLimits);
  const raster = { data, width, height };
  // sharp converts 16 bits of RGB to Display P3 instead.
  if (probe.convertsProfile && probe.depth === 16 && probe.colour !== 'gray')
    await displayP3ToSrgb()?.raster(raster, jobLimits.signal);
  return raster;
}
