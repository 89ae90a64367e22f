import sharp from 'sharp';
import type { InputFormat } from './types.ts';

/** Only loaders that read from memory: nothing of an upload may name a file. */
const LOADERS: Readonly<Record<InputFormat, string>> = {
  jpeg: 'VipsForeignLoadJpegBuffer',
  png: 'VipsForeignLoadPngBuffer',
  webp: 'VipsForeignLoadWebpBuffer',
  avif: 'VipsForeignLoadHeifBuffer',
  tiff: 'VipsForeignLoadTiffBuffer',
  gif: 'VipsForeignLoadNsgifBuffer',
};

interface LibvipsOptions {
  readonly formats: readonly InputFormat[];
  /** Threads of one decode or encode; absent leaves sharp's choice (1 on glibc without jemalloc). */
  readonly concurrency?: number;
}

interface LibvipsState {
  readonly version: string;
  readonly concurrency: number;
  readonly formats: readonly InputFormat[];
}

/**
 * Settings of libvips for the whole process; to be called once, before the first image.
 * Every loader but those of `formats` is blocked: SVG can fetch and expand, and Ultra HDR files fall back to
 * the plain JPEG in them. The operation cache is off because no two requests share an input.
 */
export function configureLibvips(options: LibvipsOptions): LibvipsState {
  sharp.cache(false);
  sharp.block({ operation: ['VipsForeignLoad'] });
  sharp.unblock({ operation: options.formats.map((format) => LOADERS[format]) });
  const concurrency =
    options.concurrency === undefined ? sharp.concurrency() : sharp.concurrency(options.concurrency);
  return { version: sharp.versions.vips, concurrency, formats: [...options.formats] };
}
