import { setImmediate as turn } from 'node:timers/promises';
import { scannedBytesPerTurn, tooManyParts, tooMuchWork } from './partLimits.ts';

/** An ICC profile has at most 255 segments; a file within the size limit has at most some hundreds of full ones. */
const maxSegments = 10_000;

/** Progressive encoders write 10 scans, those that search for the best order of them up to some tens. */
const maxScans = 100;

/**
 * How often each sample of the image is coded, on average over its components. Encoders in use need at most 7; every
 * scan goes through all blocks of its components, whatever few bytes it has.
 */
const maxPasses = 10;

const [RST0, SOI, EOI, SOS, TEM] = [0xd0, 0xd8, 0xd9, 0xda, 0x01] as const;
const JFIF = Buffer.from('JFIF');
const isRestart = (marker: number): boolean => marker >= RST0 && marker < SOI;

/** Frame headers: C0 to CF but for tables of Huffman and arithmetic coding and the extension. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);

/** The segments up to the first scan: where their lengths stand and they end. Marker 0: something else stands there. */
function* headSegments(jpeg: Uint8Array): Generator<Readonly<Record<'marker' | 'at' | 'end', number>>> {
  for (let at = 2; at + 4 <= jpeg.length; ) {
    const marker = jpeg[at + 1] ?? 0;
    if (jpeg[at] !== 0xff) return yield { marker: 0, at, end: at };
    // A marker may be preceded by any number of fill bytes.
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    const end = at + 2 + Math.max(2, (jpeg[at + 2] ?? 0) * 256 + (jpeg[at + 3] ?? 0));
    yield { marker, at: at + 2, end };
    if (marker === SOS) return;
    at = end;
  }
}

/**
 * Whether the first scan of a JPEG lacks some of its components, as in progressive files and some sequential ones: libjpeg then holds
 * the coefficients of the whole image.
 */
export function isCodedInParts(jpeg: Uint8Array): boolean {
  let components = 0;
  for (const { marker, at } of headSegments(jpeg)) {
    if (isFrame(marker)) components = jpeg[at + 7] ?? 0;
    if (marker === SOS) return (jpeg[at + 2] ?? 0) < components;
  }
  return false;
}

/** Counts the scans of a file and the samples that they go through. */
class Scans {
  /** Samples for each eight by eight of the image, by component. */
  readonly #samples = new Map<number, number>();
  #scans = 0;
  #scanned = 0;

  /** `at`: behind the marker. */
  frame(jpeg: Uint8Array, at: number): void {
    if (this.#samples.size > 0) return;
    for (let i = 0; i < (jpeg[at + 7] ?? 0); i++) {
      const [id = 0, factors = 0] = jpeg.subarray(at + 8 + 3 * i);
      this.#samples.set(id, (factors >> 4) * (factors & 15));
    }
  }

  scan(jpeg: Uint8Array, at: number): void {
    this.#scans += 1;
    if (this.#scans > maxScans) throw tooManyParts('scans', maxScans);
    for (let i = 0; i < (jpeg[at + 2] ?? 0); i++)
      this.#scanned += this.#samples.get(jpeg[at + 3 + 2 * i] ?? 0) ?? 0;
    const all = [...this.#samples.values()].reduce((sum, samples) => sum + samples, 0);
    if (this.#scanned > maxPasses * all)
      throw tooMuchWork(`The scans of the JPEG code every pixel more than ${maxPasses} times.`);
  }
}

/**
 * Throws ImageError for a JPEG of too many scans or segments, those after its scans included, of which libjpeg keeps
 * a record each. Walks from marker to marker as libjpeg does, in damaged files too.
 */
export async function checkJpeg(jpeg: Uint8Array): Promise<void> {
  const scans = new Scans();
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
    if (inScan) scans.scan(jpeg, at);
    else if (isFrame(marker)) scans.frame(jpeg, at);
    at += Math.max(2, (jpeg[at] ?? 0) * 256 + (jpeg[at + 1] ?? 0));
  }
}

/**
 * Whether libjpeg would warn before the first scan of a fault that does not affect the image: stray bytes
 * between segments, a JFIF version other than 1, spectral bounds in a sequential scan (some cameras write 0 0
 * 0). Determined from the bytes, because libvips' error texts are unreliable with concurrent jobs.
 */
export function hasHarmlessFaults(jpeg: Uint8Array): boolean {
  let sequential = false;
  for (const { marker, at, end } of headSegments(jpeg)) {
    if (marker === 0) return true;
    if (end > jpeg.length) return false;
    if (marker === 0xc0 || marker === 0xc1) sequential = true;
    const isJfif = marker === 0xe0 && Buffer.from(jpeg.subarray(at + 2, at + 6)).equals(JFIF);
    if (isJfif && end - at >= 14 && jpeg[at + 7] !== 1) return true;
    if (marker === SOS) {
      const [from, to, approximation] = jpeg.subarray(end - 3, end);
      return sequential && !(from === 0 && to === 63 && approximation === 0);
    }
  }
  return false;
}
