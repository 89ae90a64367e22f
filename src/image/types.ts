/** What src/image takes and gives. Nothing here knows HTTP, prices or the network. */

/** `avif`, `tiff` and `gif` only where the operator enables them. */
export type InputFormat = 'jpeg' | 'png' | 'webp' | 'avif' | 'tiff' | 'gif';

export type OutputFormat = 'png' | 'jpg' | 'webp' | 'zip';

/** Pixels per metre. */
export interface Density {
  readonly x: number;
  readonly y: number;
}

export interface Dimensions {
  readonly width: number;
  readonly height: number;
}

/** What the header says, before any pixel is decoded. */
export interface Probe extends Dimensions {
  readonly format: InputFormat;
  /** `width` and `height` are those of the upright image, after the EXIF orientation (1 to 8). */
  readonly orientation: number;
  readonly colour: 'rgb' | 'gray' | 'cmyk' | 'palette';
  /** Bits per sample as stored, 16 for anything above 8. */
  readonly depth: 8 | 16;
  readonly hasAlpha: boolean;
  /** Coded in several passes over the image (progressive JPEG, interlaced PNG). Absent: in one. */
  readonly progressive?: true;
  /** True where decoding converts the colours to sRGB through the embedded profile (CMYK, gray). */
  readonly convertsProfile: boolean;
  /** RGB profile of the source, to be written into the result. Absent where the colours become sRGB. */
  readonly icc?: Uint8Array;
  readonly density?: Density;
}

export interface ProbeLimits {
  readonly maxBytes: number;
  readonly maxPixels: number;
  readonly formats: readonly InputFormat[];
}

/** docs/contract.md section 3: JPEG, PNG and WebP, 22 MB, 50 MP. */
export const CONTRACT_LIMITS: ProbeLimits = {
  maxBytes: 22 * 1024 * 1024,
  maxPixels: 50_000_000,
  formats: ['jpeg', 'png', 'webp'],
};

/** Straight RGBA8, rows without padding, `data.length === width * height * 4`, upright. */
export interface Raster extends Dimensions {
  readonly data: Uint8Array;
}

/** How long and for whom a piece of work may go on. */
export interface JobLimits {
  /** Checked before and after the work; libvips cannot be torn out of it. Throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** Whole seconds after which libvips gives up (ImageError `timeout`); 0 or absent is no limit. */
  readonly timeoutSeconds?: number;
}
