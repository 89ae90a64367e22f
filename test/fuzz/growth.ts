import { deflateSync } from 'node:zlib';
import { insertJpegSegment, insertPngChunk, pngChunk, withoutPngChunk } from '../fixtures/bytes.ts';
import { PRIMARIES, rgbProfile } from '../fixtures/icc.ts';
import { elements, withTags } from '../fixtures/iccElements.ts';
import { mendChunks } from './damage.ts';
import type { Dice } from './dice.ts';

/** Ways to make a file cost more than its pixels: they repeat, enlarge and share what decoders go through. */

const kindOf = (file: Buffer): 'jpeg' | 'png' | 'webp' | 'tiff' | 'gif' | 'heif' | 'other' => {
  const head = file.toString('latin1', 0, 12);
  if (head.startsWith('\xff\xd8')) return 'jpeg';
  if (head.startsWith('\x89PNG')) return 'png';
  if (head.startsWith('RIFF')) return 'webp';
  if (/^(?:II|MM)/.test(head)) return 'tiff';
  if (head.startsWith('GIF')) return 'gif';
  return head.slice(4, 8) === 'ftyp' ? 'heif' : 'other';
};

const times = (dice: Dice): number => dice.of([2, 5, 10, 50, 300, 3000, 30_000]);

/** At most 4 MB of repetitions. */
const repeated = (piece: Buffer, count: number): Buffer =>
  Buffer.concat(
    Array.from({ length: Math.min(count, Math.ceil(4e6 / Math.max(1, piece.length))) }, () => piece),
  );

const spliced = (file: Buffer, from: number, to: number, piece: Buffer): Buffer =>
  Buffer.concat([file.subarray(0, from), piece, file.subarray(to)]);

/** Markers of a JPEG that stand for a segment, and where each ends: a scan with its data. */
function segments(jpeg: Buffer): { marker: number; from: number; to: number }[] {
  const found: { marker: number; from: number; to: number }[] = [];
  for (let at = 2; at + 4 <= jpeg.length && jpeg[at] === 0xff; ) {
    const marker = jpeg[at + 1] ?? 0;
    let to = at + 2 + jpeg.readUInt16BE(at + 2);
    while (
      marker === 0xda &&
      to + 1 < jpeg.length &&
      !(
        jpeg[to] === 0xff &&
        ![0, ...Array.from({ length: 8 }, (_, i) => 0xd0 + i)].includes(jpeg[to + 1] ?? 0)
      )
    )
      to += 1;
    found.push({ marker, from: at, to });
    at = to;
  }
  return found;
}

/** Chunks of a PNG or WebP, boxes of a HEIF at its top level: where each begins and ends. */
function pieces(file: Buffer): { from: number; to: number }[] {
  const kind = kindOf(file);
  const found: { from: number; to: number }[] = [];
  for (let at = { png: 8, webp: 12, heif: 0 }[kind as string] ?? file.length; at + 12 <= file.length; ) {
    const length =
      kind === 'png'
        ? 12 + file.readUInt32BE(at)
        : kind === 'webp'
          ? 8 + 2 * Math.ceil(file.readUInt32LE(at + 4) / 2)
          : Math.max(8, file.readUInt32BE(at));
    const to = Math.min(file.length, at + length);
    found.push({ from: at, to });
    at = to;
  }
  return found;
}

function costlyProfile(dice: Dice): Buffer {
  const curve = {
    table: Array.from({ length: dice.of([2, 256, 4096, 30_000]) }, (_, i) => (i % 4096) / 4096),
  };
  const channels = dice.of([1, 3, 4]);
  const inputs = Math.min(channels, 4);
  const grid = dice.of([2, 9, 17, 33, 255]);
  const entries = dice.of([2, 256, 4096, 65_535]);
  const bytes = Math.min(3e6, 52 + 2 * (entries * (inputs + 3) + grid ** inputs * 3));
  const table = Buffer.alloc(bytes, dice.below(256));
  table.write('mft2\0\0\0\0', 'latin1');
  table.set([inputs, 3, grid], 8);
  table.writeUInt16BE(entries, 48);
  table.writeUInt16BE(entries, 50);
  const tags = [
    ['D2B0', elements(channels, Math.min(30_000, times(dice)))],
    ['A2B0', table],
    ['B2A0', table],
    ['A2B1', elements(channels, 50)],
  ] as const;
  const profile = withTags(
    rgbProfile(PRIMARIES.adobe, curve),
    ...tags.filter(() => dice.oneIn(2)).map(([name, data]) => [name, data] as const),
  );
  profile.write(dice.of(['RGB ', 'GRAY', 'CMYK']), 16, 'latin1');
  profile.write(dice.of(['mntr', 'prtr', 'scnr', 'spac']), 12, 'latin1');
  return profile;
}

function withProfile(dice: Dice, file: Buffer): Buffer {
  const icc = costlyProfile(dice);
  const kind = kindOf(file);
  if (kind === 'png') {
    const data = Buffer.concat([Buffer.from('p\0\0'), deflateSync(icc, { level: 1 })]);
    return insertPngChunk(withoutPngChunk(file, 'iCCP'), pngChunk('iCCP', data));
  }
  if (kind !== 'jpeg') return file;
  const size = dice.of([65_000, 500, 60_000]);
  const count = Math.ceil(icc.length / size);
  if (count > 255) return file;
  let grown = file;
  for (let i = count; i > 0; i--) {
    const head = Buffer.from(`ICC_PROFILE\0${String.fromCharCode(i, count)}`, 'latin1');
    grown = insertJpegSegment(grown, 0xe2, Buffer.concat([head, icc.subarray((i - 1) * size, i * size)]));
  }
  return grown;
}

/** Other sides in the header, so that the same data stands for more, or for less. */
function resized(dice: Dice, file: Buffer): Buffer {
  const copy = Buffer.from(file);
  const side = () => dice.of([1, 64, 500, 2000, 7000, 16_383]);
  const kind = kindOf(file);
  if (kind === 'png') {
    copy.writeUInt32BE(side(), 16);
    copy.writeUInt32BE(side(), 20);
    if (dice.oneIn(3)) copy.set([dice.of([1, 8, 16]), dice.of([0, 2, 3, 6]), 0, 0, dice.below(2)], 24);
    mendChunks(copy);
  } else if (kind === 'jpeg') {
    const frame = segments(file).find(({ marker }) => [0xc0, 0xc1, 0xc2].includes(marker));
    if (frame) {
      copy.writeUInt16BE(side(), frame.from + 5);
      copy.writeUInt16BE(side(), frame.from + 7);
    }
  } else if (kind === 'gif') {
    copy.writeUInt16LE(side(), 6);
    copy.writeUInt16LE(side(), 8);
  }
  return copy;
}

/** Scans, chunks, boxes and frames again and again. */
function repetition(dice: Dice, file: Buffer): Buffer {
  const kind = kindOf(file);
  if (kind === 'jpeg') {
    const all = segments(file);
    const scans = all.filter(({ marker }) => marker === 0xda);
    const wanted = dice.oneIn(2) ? scans : all;
    const chosen = wanted[dice.below(wanted.length)];
    return chosen
      ? spliced(file, chosen.to, chosen.to, repeated(file.subarray(chosen.from, chosen.to), times(dice)))
      : file;
  }
  const found = pieces(file);
  const chosen = found[dice.below(found.length)];
  if (chosen) {
    const grown = spliced(
      file,
      chosen.to,
      chosen.to,
      repeated(file.subarray(chosen.from, chosen.to), times(dice)),
    );
    if (kind === 'webp') grown.writeUInt32LE(grown.length - 8, 4);
    return grown;
  }
  // TIFF, GIF and others: any stretch.
  const from = dice.below(file.length);
  const to = Math.min(file.length, from + 1 + dice.below(600));
  return spliced(file, to, to, repeated(file.subarray(from, to), times(dice)));
}

/** A number somewhere in the first kilobytes, where counts, sizes and places are. */
function number(dice: Dice, file: Buffer): Buffer {
  const copy = Buffer.from(file);
  const at = dice.below(Math.max(1, Math.min(copy.length, 3000) - 4));
  const value = dice.of([0, 1, 2, 8, 255, 1000, 4000, 65_535, 0x10000, 0x7fffffff]);
  if (at + 4 > copy.length) return copy;
  const write = dice.of([
    () => copy.writeUInt8(value & 255, at),
    () => copy.writeUInt16BE(value & 0xffff, at),
    () => copy.writeUInt16LE(value & 0xffff, at),
    () => copy.writeUInt32BE(value, at),
    () => copy.writeUInt32LE(value, at),
  ]);
  write();
  if (kindOf(copy) === 'png') mendChunks(copy);
  return copy;
}

/** Image data that unpacks to nothing, in front of the image's own, or to much more behind it. */
function packing(dice: Dice, file: Buffer): Buffer {
  if (kindOf(file) !== 'png') return file;
  const data = dice.oneIn(2)
    ? Buffer.concat([Buffer.from([0x78, 0x01]), repeated(Buffer.from([0, 0, 0, 0xff, 0xff]), times(dice))])
    : deflateSync(Buffer.alloc(dice.of([1e4, 1e6, 3e7])));
  return insertPngChunk(file, pngChunk(dice.of(['IDAT', 'zTXt', 'iTXt', 'eXIf']), data));
}

/** The file, grown in one to four ways. */
export function grown(dice: Dice, file: Buffer): Buffer {
  const ways = [withProfile, resized, repetition, repetition, number, number, packing] as const;
  let result = file;
  for (let left = 1 + dice.below(4); left > 0; left--) {
    try {
      result = dice.of(ways)(dice, result);
    } catch (error) {
      // A length that an earlier way has broken leads outside.
      if (!(error instanceof RangeError)) throw error;
    }
  }
  return result;
}
