import { crc32, deflateSync } from 'node:zlib';
import { insertPngChunk, pngChunk } from '../fixtures/bytes.ts';
import { PRIMARIES, rgbProfile, type Tone } from '../fixtures/icc.ts';
import type { Dice } from './dice.ts';

/** Texts, profiles and other metadata of an image, valid and damaged. */
function carried(dice: Dice): Buffer {
  const content = () => {
    const bytes = Buffer.alloc(dice.of([0, 1, 100, 10_000, 300_000]), dice.below(256));
    return dice.oneIn(3) ? bytes : deflateSync(bytes);
  };
  const name = Buffer.from(dice.of(['k', 'Comment', 'XML:com.adobe.xmp', 'Raw profile type exif', '']));
  const flags = Buffer.from(dice.of(['00', '0000', '0001000000', '0000000000', '0007']), 'hex');
  const curve = dice.of<Tone>([
    { gamma: 1 + dice.below(300) / 100 },
    { table: Array.from({ length: dice.of([2, 4096, 4097, 60_000]) }, (_, i) => (i % 4096) / 4096) },
    { shape: dice.of([0, 1, 2, 3, 4]), parameters: [2.2, 1, 0, 0.1, 0.04, 0, 0] },
  ]);
  const profile = dice.oneIn(2)
    ? rgbProfile(PRIMARIES[dice.of<keyof typeof PRIMARIES>(['adobe', 'srgb'])], curve)
    : content();
  for (let times = dice.below(3); times > 0 && profile.length > 0; times--)
    profile[dice.below(Math.min(profile.length, 400))] = dice.below(256);
  const type = dice.of(['zTXt', 'iTXt', 'tEXt', 'iCCP', 'eXIf', 'pHYs', 'sPLT', 'abCd']);
  const body = type === 'iCCP' ? deflateSync(profile) : content();
  return pngChunk(type, Buffer.concat([name, flags, body]));
}

/** Corrects the checksums of a PNG's chunks, so that damage gets past them. */
export function mendChunks(file: Buffer): void {
  for (let at = 8; at + 12 <= file.length; ) {
    const end = at + 8 + file.readUInt32BE(at);
    if (end + 4 > file.length) return;
    file.writeUInt32BE(crc32(file.subarray(at + 4, end)), end);
    at = end + 4;
  }
}

export function damage(dice: Dice, whole: Buffer, other: Buffer): Buffer {
  let file: Buffer = Buffer.from(whole);
  if (file.readUInt32BE(0) === 0x89504e47)
    for (let times = dice.of([0, 0, 1, 3, 20]); times > 0; times--)
      file = insertPngChunk(file, carried(dice));
  for (let times = dice.below(4); times > 0 && file.length > 16; times--) {
    // Headers are short and decide most: every other position is in one.
    const at = dice.oneIn(2) ? dice.below(Math.min(file.length, 200)) : dice.below(file.length);
    const length = 1 + dice.below(Math.min(60, file.length - at));
    switch (dice.below(7)) {
      case 0:
        file[at] = dice.below(256);
        break;
      case 1:
        for (let i = 0; i < length; i++) file[at + i] = dice.below(256);
        break;
      case 2:
        file = Buffer.concat([file.subarray(0, at), file.subarray(at + length)]);
        break;
      case 3:
        file = Buffer.concat([file.subarray(0, at + length), file.subarray(at)]);
        break;
      case 4:
        file = file.subarray(0, at);
        break;
      case 5:
        if (at + 4 <= file.length)
          file.writeUInt32BE(dice.of([0, 1, 0x7fffffff, 0xffffffff, 0x10000, 40_000]), at);
        break;
      default:
        file = Buffer.concat([file.subarray(0, at), other.subarray(Math.min(at, other.length))]);
    }
  }
  if (file.length > 8 && file.readUInt32BE(0) === 0x89504e47 && !dice.oneIn(4)) mendChunks(file);
  return file;
}
