import { type ZipOptions, zipSync } from 'fflate';

/** Entries as in the recorded answers: stored, made on Unix, mode 0600, sizes in the local headers. */
const STORED: ZipOptions = { level: 0, os: 3, attrs: 0o600 << 16 };

/** ZIP of docs/contract.md section 7.4: `color.jpg`, then `alpha.png`, without data descriptors and folders. */
export function zipResult(colorJpg: Uint8Array, alphaPng: Uint8Array): Buffer {
  const zip = zipSync({ 'color.jpg': [colorJpg, STORED], 'alpha.png': [alphaPng, STORED] });
  return Buffer.from(zip.buffer, zip.byteOffset, zip.byteLength);
}
