import sharp from 'sharp';
import { runJob } from './job.ts';
import type { InputFormat } from './types.ts';

/** Loaders that read from memory only, so that an upload cannot name a file. HEIC has a decoder of its own. */
const loaders: Readonly<Record<Exclude<InputFormat, 'heic'>, string>> = {
  jpeg: 'VipsForeignLoadJpegBuffer',
  png: 'VipsForeignLoadPngBuffer',
  webp: 'VipsForeignLoadWebpBuffer',
  avif: 'VipsForeignLoadHeifBuffer',
  tiff: 'VipsForeignLoadTiffBuffer',
  gif: 'VipsForeignLoadNsgifBuffer',
};

let allBlocked = false;

/**
 * Configures libvips for the whole process; to be called before the first image. Every loader but those of
 * `formats` is blocked: SVG can fetch and expand, and Ultra HDR files fall back to the plain JPEG in them.
 * A later call may change the formats; images of those that both name are read meanwhile.
 * The operation cache is off because requests share no inputs.
 */
export function configureLibvips({ formats }: { readonly formats: readonly InputFormat[] }): void {
  sharp.cache(false);
  const allowed = formats.flatMap((format) => (format === 'heic' ? [] : [loaders[format]]));
  // Once: it also blocks what threads of libvips are reading with.
  if (!allBlocked) sharp.block({ operation: ['VipsForeignLoad'] });
  allBlocked = true;
  sharp.block({ operation: Object.values(loaders).filter((loader) => !allowed.includes(loader)) });
  sharp.unblock({ operation: allowed });
}

/**
 * Computes a small image, so that threads that the system refuses are found before the first request; libvips keeps those
 * that it started. Rejects with NoThreadError.
 */
export async function tryLibvips(): Promise<void> {
  const size = { width: 512, height: 512 };
  await runJob(sharp({ create: { ...size, channels: 3, background: 'gray' } }).raw(), size, {});
}
