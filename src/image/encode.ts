import { type ZipOptions, zipSync } from 'fflate';
import sharp, { type Sharp } from 'sharp';
import type { Engine } from '../engine/engine.ts';
import type { PngOptions } from '../engine/types.ts';
import { maxImageSide } from '../inputLimits.ts';
import { ImageError } from './errors.ts';
import { type Tags, tagJpeg, tagWebp } from './fileMetadata.ts';
import { alphaItem, colourItem, writeAvif } from './heif/writeAvif.ts';
import { runJob } from './job.ts';
import type { Dimensions, JobLimits, OutputFormat, Raster } from './types.ts';

/** Encodes PNG; all other formats are encoded by libvips. */
export type PngEncoder = Pick<Engine, 'encodePng'>;

export interface EncodeOptions extends Tags, JobLimits {
  readonly format: OutputFormat;
  /** `alpha`: the matte alone, as gray. No effect on a ZIP. */
  readonly channels: 'rgba' | 'alpha';
  /** True if every pixel has alpha 255 (MatteResult.opaque). */
  readonly opaque: boolean;
  /** WebP without loss; no effect on other formats. */
  readonly lossless?: boolean;
  /** 1 fastest, 9 smallest. */
  readonly pngEffort: number;
}

const contentTypes = {
  png: 'image/png',
  jpg: 'image/jpeg',
  webp: 'image/webp',
  avif: 'image/avif',
  zip: 'application/zip',
} as const satisfies Record<OutputFormat, string>;

/** The format of a content type. */
export const formats: ReadonlyMap<string, string> = new Map(
  Object.entries(contentTypes).map(([format, type]) => [type, format]),
);

export interface Encoded {
  readonly bytes: Buffer;
  readonly contentType: (typeof contentTypes)[OutputFormat];
}

/** The maximum number of pixels per side: limits of libjpeg, WebP's 14-bit fields and libvips' AVIF. A ZIP contains a JPEG. */
const maxSides: Readonly<Record<OutputFormat, number>> = {
  png: 0x7fffffff,
  jpg: 65_500,
  webp: 16_383,
  avif: 16_384,
  zip: 65_500,
};

const fits = (format: OutputFormat, { width, height }: Dimensions) =>
  Math.max(width, height) <= maxSides[format];

/**
 * Throws ImageError `resolution_too_high` for a side that no result may have, and `invalid_format` if no file of that format can
 * hold the result. Must be called before the
 * work is done; `encode` relies on it.
 */
export function assertFits(format: OutputFormat | 'auto', result: Dimensions): void {
  if (Math.max(result.width, result.height) > maxImageSide)
    throw new ImageError(
      'resolution_too_high',
      `The result would have ${result.width} × ${result.height} pixels, a side may have at most ${maxImageSide}. Choose a smaller crop_margin.`,
    );
  if (format === 'auto' || fits(format, result)) return;
  const possible = fits('jpg', result) ? 'png, jpg or zip' : 'png';
  throw new ImageError(
    'invalid_format',
    `Expected ${possible}, received "${format}": the result has ${result.width}x${result.height} pixels, ${format} holds at most ${maxSides[format]} a side.`,
  );
}

/** Threads and tables of AVIF's encoder, for an image of any size. */
const avifEncoderBytes = 64e6;

/**
 * Upper bound of the bytes that encoding takes beside the raster, the file included; of noise for WebP and AVIF, of
 * photographs for the others (decision 0219). `auto` is PNG or JPG.
 */
export const encodeBytes = (format: OutputFormat | 'auto', { width, height }: Dimensions): number =>
  width * height * { auto: 3, png: 3, jpg: 1.5, webp: 36, avif: 48, zip: 5 }[format] +
  (format === 'avif' ? avifEncoderBytes : 0);

/** `auto` is PNG if any pixel is not opaque, for a matte, and if a JPEG could not hold the result; else JPG. */
export function resolveFormat(
  format: OutputFormat | 'auto',
  result: Dimensions & { readonly opaque: boolean; readonly channels: 'rgba' | 'alpha' },
): OutputFormat {
  if (format !== 'auto') return format;
  return result.opaque && result.channels === 'rgba' && fits('jpg', result) ? 'jpg' : 'png';
}

/** Baseline, 4:2:0, quality 90. Optimal Huffman tables take twice the time for 1 % of the size (decision 0042). */
const jpegOptions = {
  quality: 90,
  chromaSubsampling: '4:2:0',
  progressive: false,
  optimiseCoding: false,
} as const;

/** `exact` keeps RGB 0 where alpha is 0; an effort above 2 doubles the time for 3 % of the size. */
const webpOptions = { quality: 90, alphaQuality: 100, exact: true, effort: 2 } as const;
/** Every pixel of the raster, those of alpha 0 included. */
const losslessWebpOptions = { lossless: true, exact: true, effort: 0 } as const;

/** Colours: higher efforts take 2 to 30 times the time for 10 to 20 % of the size (decision 0219). */
const avifOptions = { quality: 75, chromaSubsampling: '4:4:4', effort: 0, tune: 'ssim' } as const;
/** Alpha: lossless, in an image without colours. */
const avifAlphaOptions = { lossless: true, effort: 0 } as const;

/**
 * Entries as in the recorded answers: stored, made on Unix, mode 0600, sizes in the local headers. Their time is the first
 * one of the format, so that equal images give equal bytes.
 */
const storedEntry: ZipOptions = { level: 0, os: 3, attrs: 0o600 << 16, mtime: new Date(1980, 0, 1) };

/** Writes the ZIP of docs/contract.md section 7.4: `color.jpg`, then `alpha.png`, without data descriptors and folders. */
function zipResult(colorJpg: Uint8Array, alphaPng: Uint8Array): Buffer {
  const zip = zipSync({ 'color.jpg': [colorJpg, storedEntry], 'alpha.png': [alphaPng, storedEntry] });
  return Buffer.from(zip.buffer, zip.byteOffset, zip.byteLength);
}

function encodersOf(
  { data, width, height }: Raster,
  options: EncodeOptions,
  engine: PngEncoder,
): Readonly<Record<OutputFormat, () => Promise<Buffer>>> {
  const { format, opaque, density, icc, pngEffort: effort, signal } = options;
  const isMatte = options.channels === 'alpha';
  // What is written beside a gray matte: a profile would be one of colours.
  const matteTags: Tags = density ? { density } : {};
  const colourTags: Tags = { ...matteTags, ...(icc && { icc }) };

  const image = () => sharp(data, { raw: { width, height, channels: 4 } });
  /** The colours as they are, whatever their alpha. */
  const colours = () => image().removeAlpha();
  const matte = () => image().extractChannel(3).toColourspace('b-w');
  const slow = format === 'webp' || format === 'avif';
  const finish = async (job: Sharp) => (await runJob(job, { width, height, slow }, options)).data;
  const png = (channels: PngOptions['channels'], { icc, density }: Tags) => {
    const pixelsPerMetre = density && ([density.x, density.y] as const);
    const tags = { ...(icc && { icc }), ...(pixelsPerMetre && { pixelsPerMetre }) };
    return engine.encodePng({ data, width, height }, { channels, effort, ...tags }, { signal });
  };
  const avifMatte = async () =>
    alphaItem(await finish(image().linear([0, 0, 0, 1], [0, 0, 0, 0]).avif(avifAlphaOptions)));

  return {
    png: () => (isMatte ? png('alpha', matteTags) : png('rgba', colourTags)),
    async jpg() {
      if (isMatte) return tagJpeg(await finish(matte().jpeg(jpegOptions)), matteTags);
      const onWhite = opaque ? colours() : image().flatten({ background: '#ffffff' });
      return tagJpeg(await finish(onWhite.jpeg(jpegOptions)), colourTags);
    },
    async webp() {
      const webpOf = (job: Sharp) => finish(job.webp(options.lossless ? losslessWebpOptions : webpOptions));
      if (isMatte) return webpOf(matte());
      return tagWebp(await webpOf(opaque ? colours() : image()), colourTags, { width, height });
    },
    async avif() {
      if (isMatte) return writeAvif(await avifMatte());
      // One after the other: each takes as much memory as the raster several times.
      const colour = colourItem(await finish(colours().avif(avifOptions)));
      const alpha = opaque ? undefined : await avifMatte();
      return writeAvif(colour, { ...(alpha && { alpha }), ...(icc && { icc }) });
    },
    async zip() {
      const [color, alpha] = await Promise.all([
        finish(colours().jpeg(jpegOptions)),
        png('alpha', matteTags),
      ]);
      return zipResult(tagJpeg(color, colourTags), alpha);
    },
  };
}

/**
 * Encodes the finished raster, which must not be written to meanwhile. `icc` and `density` are those of the
 * source (Probe): PNG and JPG get both, WebP and AVIF have no field for the density, and a gray matte gets no profile.
 * `jpg` composites a raster that is not opaque over white; the JPEG in a ZIP has the RGB values as they are,
 * alpha ignored. RGB under alpha 0 is up to the caller (MattePlan.hiddenColour: `keep` for a ZIP).
 */
export async function encode(raster: Raster, options: EncodeOptions, engine: PngEncoder): Promise<Encoded> {
  const { format } = options;
  const bytes = await encodersOf(raster, options, engine)[format]();
  return { bytes, contentType: contentTypes[format] };
}
