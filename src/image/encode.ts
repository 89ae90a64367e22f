import sharp, { type Sharp } from 'sharp';
import type { Engine } from '../engine/engine.ts';
import type { PngOptions } from '../engine/types.ts';
import { MAX_SIDE } from '../inputLimits.ts';
import { ImageError } from './errors.ts';
import { alphaItem, colourItem, writeAvif } from './heif/writeAvif.ts';
import { type Tags, tagJpeg, tagWebp } from './iccTags.ts';
import { runJob } from './job.ts';
import type { Dimensions, JobLimits, OutputFormat, Raster } from './types.ts';
import { zipResult } from './zip.ts';

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

export interface Encoded {
  readonly bytes: Buffer;
  readonly contentType: 'image/png' | 'image/jpeg' | 'image/webp' | 'image/avif' | 'application/zip';
}

/** The maximum number of pixels per side: limits of libjpeg, WebP's 14-bit fields and libvips' AVIF. A ZIP contains a JPEG. */
const FORMAT_MAX_SIDE: Readonly<Record<OutputFormat, number>> = {
  png: 0x7fffffff,
  jpg: 65_500,
  webp: 16_383,
  avif: 16_384,
  zip: 65_500,
};

const fits = (format: OutputFormat, { width, height }: Dimensions) =>
  Math.max(width, height) <= FORMAT_MAX_SIDE[format];

/**
 * Throws ImageError `resolution_too_high` for a side that no result may have, and `invalid_format` if no file of that format can
 * hold the result. Must be called before the
 * work is done; `encode` relies on it.
 */
export function assertFits(format: OutputFormat | 'auto', result: Dimensions): void {
  if (Math.max(result.width, result.height) > MAX_SIDE)
    throw new ImageError(
      'resolution_too_high',
      `The result would have ${result.width} × ${result.height} pixels, a side may have at most ${MAX_SIDE}. Choose a smaller crop_margin.`,
    );
  if (format === 'auto' || fits(format, result)) return;
  const possible = fits('jpg', result) ? 'png, jpg or zip' : 'png';
  throw new ImageError(
    'invalid_format',
    `Expected ${possible}, received "${format}": the result has ${result.width}x${result.height} pixels, ${format} holds at most ${FORMAT_MAX_SIDE[format]} a side.`,
  );
}

/** Threads and tables of AVIF's encoder, for an image of any size. */
const AVIF_ENCODER_BYTES = 64e6;

/**
 * Upper bound of the bytes that encoding takes beside the raster, the file included; of noise for WebP and AVIF, of
 * photographs for the others (docs/decisions/0219). `auto` is PNG or JPG.
 */
export const encodeBytes = (format: OutputFormat | 'auto', { width, height }: Dimensions): number =>
  width * height * { auto: 3, png: 3, jpg: 1.5, webp: 36, avif: 48, zip: 5 }[format] +
  (format === 'avif' ? AVIF_ENCODER_BYTES : 0);

/** `auto` is PNG if any pixel is not opaque, for a matte, and if a JPEG could not hold the result; else JPG. */
export function resolveFormat(
  format: OutputFormat | 'auto',
  result: Dimensions & { readonly opaque: boolean; readonly channels: 'rgba' | 'alpha' },
): OutputFormat {
  if (format !== 'auto') return format;
  return result.opaque && result.channels === 'rgba' && fits('jpg', result) ? 'jpg' : 'png';
}

/**
 * Baseline, 4:2:0, quality 90. Standard Huffman tables: optimal ones need a second pass over the image, twice
 * the time for 1 % of the size (docs/decisions/0042).
 */
const JPEG = { quality: 90, chromaSubsampling: '4:2:0', progressive: false, optimiseCoding: false } as const;

/** `exact` keeps RGB 0 where alpha is 0; an effort above 2 doubles the time for 3 % of the size. */
const WEBP = { quality: 90, alphaQuality: 100, exact: true, effort: 2 } as const;
/** Every pixel of the raster, those of alpha 0 included. */
const LOSSLESS_WEBP = { lossless: true, exact: true, effort: 0 } as const;

/** Colours: higher efforts take 2 to 30 times the time for 10 to 20 % of the size (docs/decisions/0219). */
const AVIF = { quality: 75, chromaSubsampling: '4:4:4', effort: 0, tune: 'ssim' } as const;
/** Alpha: lossless, in an image without colours. */
const AVIF_ALPHA = { lossless: true, effort: 0 } as const;

/**
 * Encodes the finished raster, which must not be written to meanwhile. `icc` and `density` are those of the
 * source (Probe): PNG and JPG get both, WebP and AVIF have no field for the density, and a gray matte gets no profile.
 * `jpg` composites a raster that is not opaque over white; the JPEG in a ZIP has the RGB values as they are,
 * alpha ignored. RGB under alpha 0 is up to the caller (MattePlan.hiddenColour: `keep` for a ZIP).
 */
export async function encode(raster: Raster, options: EncodeOptions, engine: PngEncoder): Promise<Encoded> {
  const { format, channels, opaque, icc, density, pngEffort, signal } = options;
  const { width, height } = raster;
  const resolution: Tags = density ? { density } : {};
  const tags: Tags = { ...resolution, ...(icc && { icc }) };
  const image = () => sharp(raster.data, { raw: { width, height, channels: 4 } });
  const matte = () => image().extractChannel(3).toColourspace('b-w');

  const slow = format === 'webp' || format === 'avif';
  const finish = async (pipeline: Sharp) => (await runJob(pipeline, { width, height, slow }, options)).data;
  const encodePng = (wanted: PngOptions['channels'], { icc: profile, density: pixels }: Tags) =>
    engine.encodePng(
      raster,
      {
        channels: wanted,
        effort: pngEffort,
        ...(profile && { icc: profile }),
        ...(pixels && { pixelsPerMetre: [pixels.x, pixels.y] as const }),
      },
      { signal },
    );
  const onWhite = () => (opaque ? image().removeAlpha() : image().flatten({ background: '#ffffff' }));

  switch (format) {
    case 'png':
      return {
        bytes: await (channels === 'alpha' ? encodePng('alpha', resolution) : encodePng('rgba', tags)),
        contentType: 'image/png',
      };
    case 'jpg':
      return {
        bytes:
          channels === 'alpha'
            ? tagJpeg(await finish(matte().jpeg(JPEG)), resolution)
            : tagJpeg(await finish(onWhite().jpeg(JPEG)), tags),
        contentType: 'image/jpeg',
      };
    case 'webp': {
      const colours = opaque ? image().removeAlpha() : image();
      const webp = options.lossless ? LOSSLESS_WEBP : WEBP;
      return {
        bytes:
          channels === 'alpha'
            ? await finish(matte().webp(webp))
            : tagWebp(await finish(colours.webp(webp)), tags, raster),
        contentType: 'image/webp',
      };
    }
    case 'avif': {
      const codedMatte = async () =>
        alphaItem(await finish(image().linear([0, 0, 0, 1], [0, 0, 0, 0]).avif(AVIF_ALPHA)));
      const codedColours = async () => colourItem(await finish(image().removeAlpha().avif(AVIF)));
      if (channels === 'alpha') return { bytes: writeAvif(await codedMatte()), contentType: 'image/avif' };
      // One after the other: each takes as much memory as the raster several times.
      const colours = await codedColours();
      const alpha = opaque ? undefined : await codedMatte();
      return {
        bytes: writeAvif(colours, { ...(alpha && { alpha }), ...(icc && { icc }) }),
        contentType: 'image/avif',
      };
    }
    case 'zip': {
      const [color, alpha] = await Promise.all([
        finish(image().removeAlpha().jpeg(JPEG)),
        encodePng('alpha', resolution),
      ]);
      return { bytes: zipResult(tagJpeg(color, tags), alpha), contentType: 'application/zip' };
    }
  }
}
