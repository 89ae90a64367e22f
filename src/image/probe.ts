import sharp, { type Metadata } from 'sharp';
import { checkParts, forDecoder, statesColour } from './container/check.ts';
import { isCodedInParts } from './container/jpeg.ts';
import { readDensity } from './density.ts';
import { checkProfile } from './embeddedProfile.ts';
import {
  assertDimensions,
  cannotRead,
  cutShort,
  dimensionsUnreadable,
  ImageError,
  NoThreadError,
  orNoThread,
} from './errors.ts';
import { usableRgbProfile } from './fileMetadata.ts';
import { checkAvif, readHeicHeader } from './heif/heicHeader.ts';
import { isInputFormat, sniff } from './sniff.ts';
import type { InputFormat, JobLimits, Probe, ProbeLimits } from './types.ts';

const mebibyte = 1024 * 1024;
/** Milliseconds that a library may take for a header: a thousand times what it should. */
const headerMs = 10_000;

function refuseType(received: string, { formats }: ProbeLimits): ImageError {
  const expected = formats.map((format) => (format === 'jpeg' ? 'jpg' : format)).join('/');
  const why = isInputFormat(received)
    ? '; the operator of this service can allow it (CUTOUT_INPUT_FORMATS)'
    : '';
  return new ImageError('invalid_file_type', `Expected ${expected}, received ${received}${why}`);
}

function inputFormat(bytes: Uint8Array, limits: ProbeLimits): InputFormat {
  const received = sniff(bytes);
  if (isInputFormat(received) && limits.formats.includes(received)) return received;
  throw refuseType(received, limits);
}

function colour({ isPalette, space }: Metadata): Probe['colour'] {
  if (isPalette) return 'palette';
  if (space === 'cmyk') return 'cmyk';
  return space === 'b-w' || space === 'grey16' ? 'gray' : 'rgb';
}

/** Whether a RIFF file is shorter than its header states. */
function isTruncated(bytes: Uint8Array): boolean {
  const { buffer, byteOffset, byteLength } = bytes;
  return byteLength < 8 + new DataView(buffer, byteOffset, byteLength).getUint32(4, true);
}

/** A HEIC is decoded to upright RGBA. libheif converts gray; its values are gray in an RGB image. */
function probeHeic(bytes: Uint8Array, limits: ProbeLimits): Probe {
  const { icc: embedded, premultiplied, codePoints, ...header } = readHeicHeader(bytes, limits);
  assertDimensions(header, limits);
  const icc = embedded && usableRgbProfile(embedded);
  return {
    format: 'heic',
    ...header,
    orientation: 1,
    colour: 'rgb',
    convertsProfile: false,
    ...(premultiplied && { premultiplied }),
    ...(icc ? { icc } : codePoints && { codePoints }),
  };
}

/**
 * Detects the type from the bytes and reads the header; decodes no pixel. `watch` times the library. Throws NoThreadError, or ImageError, checking in this
 * order: `file_too_large`, `invalid_file_type`, `failed_to_read_image` (too many parts), `invalid_dimensions`
 * (or `failed_to_read_image` for a truncated WebP), `resolution_too_high`.
 */
export async function probe(
  bytes: Uint8Array,
  limits: ProbeLimits,
  watch?: JobLimits['watch'],
): Promise<Probe> {
  if (bytes.length > limits.maxBytes) {
    throw new ImageError('file_too_large', `File exceeds limit of ${limits.maxBytes / mebibyte}MB`);
  }
  const format = inputFormat(bytes, limits);
  await checkParts(bytes, format);
  if (format === 'heic') return probeHeic(bytes, limits);
  const codePoints = format === 'avif' ? checkAvif(bytes, limits) : undefined;
  const needed = forDecoder(bytes, format);
  let metadata: Metadata;
  const ended = watch?.(headerMs);
  try {
    // The limit is checked below, where the error can state the number of pixels.
    metadata = await sharp(needed, { limitInputPixels: false }).metadata();
  } catch (thrown) {
    const error = orNoThread(thrown);
    if (error instanceof NoThreadError) throw error;
    // WebP is the only format that libvips opens only if it is complete.
    if (format === 'webp' && isTruncated(bytes)) throw cannotRead(cutShort, error);
    throw new ImageError('invalid_dimensions', dimensionsUnreadable, error);
  } finally {
    ended?.();
  }
  const { autoOrient: upright, orientation = 1 } = metadata;
  assertDimensions(upright, limits);

  const kind = colour(metadata);
  const becomesSrgb = kind === 'cmyk' || kind === 'gray' || statesColour(bytes, format);
  const { bounded, embedded } = metadata.icc ? await checkProfile(needed, format, metadata.icc) : {};
  const icc = becomesSrgb || !bounded ? undefined : usableRgbProfile(bounded);
  const density = readDensity(needed, format, metadata.exif);
  return {
    format,
    width: upright.width,
    height: upright.height,
    orientation,
    colour: kind,
    depth: metadata.depth === 'uchar' ? 8 : 16,
    hasAlpha: metadata.hasAlpha,
    convertsProfile: becomesSrgb && metadata.hasProfile,
    ...((metadata.isProgressive || (format === 'jpeg' && isCodedInParts(bytes))) && {
      progressive: true as const,
    }),
    ...(embedded && { embedded }),
    ...(icc ? { icc } : codePoints && { codePoints }),
    ...(density && { density }),
  };
}
