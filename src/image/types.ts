import { maxFileBytes, maxMegapixels } from '../inputLimits.ts';
import type { CodePoints } from './codePoints.ts';

/** Types of src/image. Nothing here depends on HTTP, prices or the network. */

/** Formats beside those of the contract: `cutout run` reads them, and the API does if the operator enables them. */
export const optionalFormats = ['avif', 'heic', 'tiff', 'gif'] as const;

export type InputFormat = 'jpeg' | 'png' | 'webp' | (typeof optionalFormats)[number];

export type OutputFormat = 'png' | 'jpg' | 'webp' | 'avif' | 'zip';

/** Pixels per metre. */
export interface Density {
  readonly x: number;
  readonly y: number;
}

export interface Dimensions {
  readonly width: number;
  readonly height: number;
}

/**
 * What becomes of a profile that may not reach the colour library as it is: nothing, or the beginning of the profile,
 * header and table of tags, is replaced by one of the same length that names fewer tags.
 */
export type EmbeddedProfile = 'unusable' | { readonly from: Uint8Array; readonly to: Uint8Array };

/** What the header states, before any pixel is decoded. */
export interface Probe extends Dimensions {
  readonly format: InputFormat;
  /** EXIF orientation, 1 to 8; `width` and `height` are those of the upright image. */
  readonly orientation: number;
  readonly colour: 'rgb' | 'gray' | 'cmyk' | 'palette';
  /** Bits per sample as stored; 16 for anything above 8. */
  readonly depth: 8 | 16;
  readonly hasAlpha: boolean;
  /** Coded in several passes over the image (JPEG in several scans, interlaced PNG). Absent: in one. */
  readonly progressive?: true;
  /** The colours of a HEIC are multiplied by its alpha. Absent: they are not. */
  readonly premultiplied?: true;
  /** The colours of a HEIC or an AVIF without a profile, which decoding converts to sRGB. Absent: nothing is stated. */
  readonly codePoints?: CodePoints;
  /** Whether decoding converts the colours to sRGB through the embedded profile (CMYK, gray). */
  readonly convertsProfile: boolean;
  /** Absent: there is no profile, or it may be read as it is. */
  readonly embedded?: EmbeddedProfile;
  /** RGB profile of the source, bounded, to be written into the result. Absent if the colours become sRGB. */
  readonly icc?: Uint8Array;
  readonly density?: Density;
}

export interface ProbeLimits {
  readonly maxBytes: number;
  readonly maxPixels: number;
  readonly formats: readonly InputFormat[];
}

/** Limits of docs/contract.md section 3. */
export const contractLimits: ProbeLimits = {
  maxBytes: maxFileBytes,
  maxPixels: maxMegapixels * 1e6,
  formats: ['jpeg', 'png', 'webp'],
};

/** Straight RGBA8, upright, row-major without padding, `data.length === width * height * 4`. */
export interface Raster extends Dimensions {
  readonly data: Uint8Array;
}

/** Time limit and cancellation of a job, and who watches over its time. */
export interface JobLimits {
  /** Checked before and after the work, which libvips cannot interrupt. Throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** Whole seconds after which libvips gives up (ImageError `timeout`); 0 or absent: no limit. */
  readonly timeoutSeconds?: number;
  /** Called when a library begins with pixels; `ms`: what it may take at most. Returns what to call at its end. */
  readonly watch?: ((ms: number) => () => void) | undefined;
}
