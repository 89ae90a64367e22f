import { boundedProfile } from './sanitiseProfile.ts';
import type { Density, Dimensions } from './types.ts';

/**
 * ICC profile and resolution to insert into finished JPEG and WebP files: sharp accepts a profile only as a
 * file on disk, where nothing of an upload may be written (decision 0041).
 */
export interface Tags {
  readonly icc?: Uint8Array;
  readonly density?: Density;
}

/** A segment holds 65 533 bytes, 14 of them the APP2 header (ICC.1:2022, annex B.4). */
const iccPerSegment = 65_519;

/** Bytes of a profile that is kept: those of cameras have a few kilobytes, but a JPEG could carry 16 MB. */
const maxIccBytes = 1024 * 1024;

/** The bounded profile if it is complete and for RGB images (ICC.1:2022, section 7.2), else undefined. */
export function usableRgbProfile(icc: Uint8Array): Uint8Array | undefined {
  if (icc.length < 128 || icc.length > maxIccBytes) return;
  const header = Buffer.from(icc.buffer, icc.byteOffset, 128);
  const whole = header.readUInt32BE(0) === icc.length && header.toString('latin1', 36, 40) === 'acsp';
  return whole && header.toString('latin1', 16, 20) === 'RGB ' ? boundedProfile(icc) : undefined;
}

function segment(marker: number, body: Uint8Array): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt16BE(marker, 0);
  head.writeUInt16BE(body.length + 2, 2);
  return Buffer.concat([head, body]);
}

function jfif(density: Density): Buffer {
  const dotsPerInch = (perMetre: number) => Math.min(0xffff, Math.max(1, Math.round(perMetre * 0.0254)));
  const body = Buffer.from('JFIF\0\x01\x01\x01\0\0\0\0\0\0', 'latin1');
  body.writeUInt16BE(dotsPerInch(density.x), 8);
  body.writeUInt16BE(dotsPerInch(density.y), 10);
  return segment(0xffe0, body);
}

function iccSegments(icc: Uint8Array): Buffer[] {
  const count = Math.ceil(icc.length / iccPerSegment);
  return Array.from({ length: count }, (_, i) => {
    const heading = Buffer.from(`ICC_PROFILE\0${String.fromCharCode(i + 1, count)}`, 'latin1');
    const part = icc.subarray(i * iccPerSegment, (i + 1) * iccPerSegment);
    return segment(0xffe2, Buffer.concat([heading, part]));
  });
}

/** Inserts JFIF resolution and ICC profile into a JPEG, replacing its JFIF segment. */
export function tagJpeg(jpeg: Buffer, { icc, density }: Tags): Buffer {
  if (!icc && !density) return jpeg;
  const hasJfif = jpeg.readUInt16BE(2) === 0xffe0;
  const rest = hasJfif && density ? 4 + jpeg.readUInt16BE(4) : 2;
  // JFIF must remain the first segment, so the profile goes behind one that is kept.
  const head = hasJfif && !density ? 4 + jpeg.readUInt16BE(4) : 2;
  return Buffer.concat([
    jpeg.subarray(0, head),
    ...(density ? [jfif(density)] : []),
    ...(icc ? iccSegments(icc) : []),
    jpeg.subarray(Math.max(rest, head)),
  ]);
}

function chunk(name: string, body: Uint8Array): Buffer {
  const head = Buffer.alloc(8);
  head.write(name, 'latin1');
  head.writeUInt32LE(body.length, 4);
  return Buffer.concat([head, body, Buffer.alloc(body.length % 2)]);
}

const vp8xIcc = 0x20;
const vp8xAlpha = 0x10;

/**
 * Inserts an ICC profile into a WebP: chunk ICCP behind VP8X, which is added to a simple file (RFC 9649,
 * section 2.7). WebP has no field for a resolution.
 */
export function tagWebp(webp: Buffer, { icc }: Tags, { width, height }: Dimensions): Buffer {
  if (!icc) return webp;
  const extended = webp.toString('latin1', 12, 16) === 'VP8X';
  const vp8x = Buffer.alloc(10);
  if (extended) webp.copy(vp8x, 0, 20, 30);
  else {
    // Bit 28 of a lossless bitstream's header states that alpha is used; a simple lossy file has no alpha.
    const lossless = webp.toString('latin1', 12, 16) === 'VP8L';
    vp8x.writeUInt8(lossless && webp.readUInt32LE(21) & 0x10000000 ? vp8xAlpha : 0, 0);
    vp8x.writeUIntLE(width - 1, 4, 3);
    vp8x.writeUIntLE(height - 1, 7, 3);
  }
  vp8x.writeUInt8(vp8x.readUInt8(0) | vp8xIcc, 0);
  const body = Buffer.concat([
    Buffer.from('WEBP', 'latin1'),
    chunk('VP8X', vp8x),
    chunk('ICCP', icc),
    webp.subarray(extended ? 30 : 12),
  ]);
  return chunk('RIFF', body);
}
