import { setImmediate as turn } from 'node:timers/promises';
import { bytesATurn, tooManyParts } from './bounds.ts';

/** A profile has 255 segments at most; no file of the legal size has more than some hundreds of full ones. */
const mostSegments = 10_000;

const [RST0, SOI, EOI, SOS, TEM] = [0xd0, 0xd8, 0xd9, 0xda, 0x01] as const;
const isRestart = (marker: number): boolean => marker >= RST0 && marker < SOI;

/**
 * Throws ImageError for a JPEG of too many segments, those between and behind its scans included: libjpeg keeps a record of
 * each. Goes from marker to marker as libjpeg does, also in a damaged file.
 */
export async function checkJpeg(jpeg: Uint8Array): Promise<void> {
  let segments = 0;
  let inScan = false;
  let until = bytesATurn;
  for (let at = 2; at + 1 < jpeg.length; ) {
    if (at >= until) {
      await turn();
      until = at + bytesATurn;
    }
    const stop = Math.min(until, jpeg.length - 1);
    while (at < stop && jpeg[at] !== 0xff) at += 1;
    if (at >= stop) continue;
    const marker = jpeg[at + 1] ?? 0;
    // Before a marker there may be any number of fill bytes.
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    at += 2;
    if (marker === 0 || (inScan && isRestart(marker))) continue;
    if (marker === EOI) return;
    segments += 1;
    if (segments > mostSegments) throw tooManyParts('segments', mostSegments);
    if (isRestart(marker) || marker === SOI || marker === TEM) continue;
    inScan = marker === SOS;
    at += Math.max(2, (jpeg[at] ?? 0) * 256 + (jpeg[at + 1] ?? 0));
  }
}
