import { type ZipOptions, zipSync } from 'fflate';

/**
 * Entries as in the recorded answers: stored, made on Unix, mode 0600, sizes in the local headers. Their time is the first
 * one of the format, so that equal images give equal bytes.
 */
const STORED: ZipOptions = { level: 0, os: 3, attrs: 0o600 << 16, mtime: new Date(1980, 0, 1) };

/** ZIP of docs/contract.md section 7.4: `color.jpg`, then `alpha.png`, without data descriptors and folders. */
export function zipResult(colorJpg: Uint8Array, alphaPng: Uint8Array): Buffer {
  const zip = zipSync({ 'color.jpg': [colorJpg, STORED], 'alpha.png': [alphaPng, STORED] });
  return Buffer.from(zip.buffer, zip.byteOffset, zip.byteLength);
}
