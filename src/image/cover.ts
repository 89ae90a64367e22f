import sharp from 'sharp';
import { forConversion } from './embeddedProfile.ts';
import { decodeHeif, isHeif } from './heif/decodeHeif.ts';
import { decodePixels } from './job.ts';
import { openUpright } from './orientation.ts';
import { fromSrgb, toSrgb } from './profileConversion.ts';
import type { Dimensions, JobLimits, Probe, Raster } from './types.ts';

/** Pixels of a side from which on libvips refuses to enlarge (VIPS_MAX_COORD). */
const maxEnlargedSide = 10_000_000;

/** The part of an upright image that is seen in a canvas that it covers, centred: whole pixels, as many left out on either side. */
function seenPart({ width, height }: Dimensions, canvas: Dimensions) {
  const scale = Math.min(width / canvas.width, height / canvas.height);
  const leftOut = (side: number, seen: number) => Math.max(0, Math.floor((side - seen * scale) / 2));
  const left = leftOut(width, canvas.width);
  const top = leftOut(height, canvas.height);
  return { left, top, width: width - 2 * left, height: height - 2 * top };
}

/**
 * Decodes a background image, upright and as straight RGBA8, to exactly `canvas`: scaled up or down to cover
 * it, aspect ratio kept, centred, the rest cut off. An image of that size is not resampled. Colours are
 * converted to sRGB, or to the foreground's profile `icc`: an image with that very profile stays unchanged,
 * others are converted through sRGB.
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
  const decoded = isHeif(probe.format) ? await decodeHeif(bytes, probe, probe, jobLimits) : undefined;
  if (decoded && probe.icc && !same) await toSrgb(probe.icc)?.raster(decoded, jobLimits.signal);
  const file = forConversion(bytes, probe);
  const open = () => {
    const source = decoded
      ? sharp(decoded.data, { raw: { width: decoded.width, height: decoded.height, channels: 4 } })
      : openUpright(file.bytes, probe, { ignoreIcc: same || file.ignoreIcc });
    // sharp turns after scaling, the whole image in memory. With a part cut out it turns before both, so what is not
    // seen is never enlarged.
    const scale = Math.max(width / probe.width, height / probe.height);
    const tooLong = scale * Math.max(probe.width, probe.height) >= maxEnlargedSide;
    const cutFirst = tooLong || (scale > 1 && probe.orientation !== 1);
    const part = cutFirst ? source.extract(seenPart(probe, canvas)) : source;
    return part
      .resize({ width, height, fit: 'cover', position: 'centre', kernel: 'lanczos3' })
      .toColourspace('srgb')
      .ensureAlpha()
      .raw();
  };
  const larger = { width: probe.width + width, height: probe.height + height };
  const data = await decodePixels(open, larger, { width, height, channels: 4 }, jobLimits);
  const raster = { data, width, height };
  if (icc && !same) await fromSrgb(icc)?.raster(raster, jobLimits.signal);
  return raster;
}
