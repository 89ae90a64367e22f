import { setImmediate as turn } from 'node:timers/promises';
import { scannedBytesPerTurn, tooManyParts } from './scanLimits.ts';

/**
 * An ICC profile has at most 255 segments; a file within the size limit has at most some hundreds of full
 * ones.
 */
const maxSegments = 10_000;

const [RST0, SOI, EOI, SOS, TEM] = [0xd0, 0xd8, 0xd9, 0xda, 0x01] as const;
const isRestart = (marker: number): boolean => marker >= RST0 && marker < SOI;

/**
 * Rejects with ImageError for a JPEG of too many segments, including those between and after its scans:
 * libjpeg stores a record of each. Walks from marker to marker as libjpeg does, in damaged files too.
 */
export async function checkJpeg(jpeg: Uint8Array): Promise<void> {
  let segments = 0;
  let inScan = false;
  let until = scannedBytesPerTurn;
  for (let at = 2; at + 1 < jpeg.length; ) {
    if (at >= until) {
      await turn();
      until = at + scannedBytesPerTurn;
    }
    const stop = Math.min(until, jpeg.length - 1);
    while (at < stop && jpeg[at] !== 0xff) at += 1;
    if (at >= stop) continue;
    const marker = jpeg[at + 1] ?? 0;
    // A marker may be preceded by any number of fill bytes.
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    at += 2;
    if (marker === 0 || (inScan && isRestart(marker))) continue;
    if (marker === EOI) return;
    segments += 1;
    if (segments > maxSegments) throw tooManyParts('segments', maxSegments);
    if (isRestart(marker) || marker === SOI || marker === TEM) continue;
    inScan = marker === SOS;
    at += Math.max(2, (jpeg[at] ?? 0) * 256 + (jpeg[at + 1] ?? 0));
  }
}
