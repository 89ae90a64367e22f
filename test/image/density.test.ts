import test from 'ava';
import sharp from 'sharp';
import { readDensity } from '../../src/image/density.ts';
import {
  exifBlock,
  insertJpegSegment,
  insertPngChunk,
  pngChunk,
  withoutPngChunk,
} from '../fixtures/bytes.ts';

const image = () => sharp({ create: { width: 4, height: 4, channels: 3, background: '#abc' } });

const jfif = (unit: number, x: number, y: number) => {
  const body = Buffer.from('JFIF\0\x01\x02\0\0\0\0\0\0\0', 'latin1');
  body.writeUInt8(unit, 7);
  body.writeUInt16BE(x, 8);
  body.writeUInt16BE(y, 10);
  return body;
};

const pHYs = (x: number, y: number, unit: number) => {
  const body = Buffer.alloc(9);
  body.writeUInt32BE(x, 0);
  body.writeUInt32BE(y, 4);
  body.writeUInt8(unit, 8);
  return pngChunk('pHYs', body);
};

const resolution = { x: 240, y: 120, unit: 2 };

test('JFIF in dots per inch and per centimetre', async (t) => {
  const jpeg = await image().jpeg().toBuffer();
  t.deepEqual(readDensity(insertJpegSegment(jpeg, 0xe0, jfif(1, 300, 150)), 'jpeg'), { x: 11811, y: 5906 });
  t.deepEqual(readDensity(insertJpegSegment(jpeg, 0xe0, jfif(2, 118, 118)), 'jpeg'), { x: 11800, y: 11800 });
});

test('a JFIF aspect ratio is no resolution, nor is a missing one', async (t) => {
  const jpeg = await image().jpeg().toBuffer();
  t.is(readDensity(insertJpegSegment(jpeg, 0xe0, jfif(0, 1, 1)), 'jpeg'), undefined);
  t.is(readDensity(insertJpegSegment(jpeg, 0xe0, jfif(1, 0, 0)), 'jpeg'), undefined);
  t.is(readDensity(jpeg, 'jpeg', exifBlock({ orientation: 6 })), undefined);
});

test('PNG pHYs in metres, with different x and y; an aspect ratio is none', async (t) => {
  const png = withoutPngChunk(await image().png().toBuffer(), 'pHYs');
  t.is(readDensity(png, 'png'), undefined);
  t.deepEqual(readDensity(insertPngChunk(png, pHYs(2835, 3000, 1)), 'png'), { x: 2835, y: 3000 });
  t.is(readDensity(insertPngChunk(png, pHYs(2, 1, 0)), 'png'), undefined);
  t.is(readDensity(insertPngChunk(png, pHYs(0, 0, 1)), 'png'), undefined);
});

test('EXIF in inches and centimetres, in either byte order, if the container states nothing', async (t) => {
  const jpeg = await image().jpeg().toBuffer();
  for (const little of [true, false]) {
    t.deepEqual(readDensity(jpeg, 'jpeg', exifBlock({ orientation: 6, resolution }, little)), {
      x: 9449,
      y: 4724,
    });
    t.deepEqual(readDensity(jpeg, 'webp', exifBlock({ resolution: { ...resolution, unit: 3 } }, little)), {
      x: 24000,
      y: 12000,
    });
  }
  t.is(readDensity(jpeg, 'jpeg', exifBlock({ resolution: { ...resolution, unit: 1 } })), undefined);
});

test('JFIF takes precedence over EXIF', async (t) => {
  const file = insertJpegSegment(await image().jpeg().toBuffer(), 0xe0, jfif(1, 72, 72));
  t.deepEqual(readDensity(file, 'jpeg', exifBlock({ resolution })), { x: 2835, y: 2835 });
});

test('no prefix of a file and no damage to EXIF causes an exception', async (t) => {
  const file = insertJpegSegment(await image().jpeg().toBuffer(), 0xe0, jfif(1, 72, 72));
  const png = insertPngChunk(await image().png().toBuffer(), pHYs(2835, 2835, 1));
  const exif = exifBlock({ orientation: 3, resolution });
  for (let length = 0; length < 120; length += 1) {
    t.notThrows(() => readDensity(file.subarray(0, length), 'jpeg', exif.subarray(0, length)));
    t.notThrows(() => readDensity(png.subarray(0, length), 'png'));
  }
  for (let at = 0; at < exif.length; at += 1) {
    const damaged = Buffer.from(exif);
    damaged.writeUInt8(0xff, at);
    t.notThrows(() => readDensity(file, 'webp', damaged));
  }
});
