import test from 'ava';
import sharp from 'sharp';
import { loadPng, type PngOptions } from './pngAddon.ts';
import {
  clearImage,
  cutImage,
  drawingImage,
  expectedPixels,
  flatImage,
  gradientImage,
  type Image,
  noiseImage,
  paint,
  photoImage,
} from './pngImages.ts';
import { decodePng, inflateStrictly } from './pngReference.ts';

const png = loadPng();
const EFFORTS = [1, 2, 3, 4, 5, 6, 7, 8, 9];
const plain: PngOptions = { alphaOnly: false, effort: 3 };

const encode = (image: Image, options: PngOptions, threads = 1, stopped = false): Buffer =>
  png.encodePng(image.data, image.width, image.height, image.stride, options, threads, stopped);

/** Pixels as libvips reads them. */
async function readBySharp(file: Buffer): Promise<Buffer> {
  const metadata = await sharp(file).metadata();
  const image = sharp(file, { ignoreIcc: true, limitInputPixels: false });
  return (metadata.channels === 1 ? image.toColourspace('b-w') : image).raw().toBuffer();
}

const images: Record<string, Image> = {
  'one pixel': noiseImage(1, 1),
  'one column': noiseImage(1, 301),
  'one row': noiseImage(307, 1),
  'odd sides': noiseImage(13, 7),
  'rows with padding': noiseImage(21, 19, 21 * 4 + 11),
  noise: noiseImage(150, 131),
  'one colour': flatImage(331, 277),
  'all transparent': clearImage(400, 301),
  gradients: gradientImage(299, 203),
  'a photo': photoImage(257, 190),
  'a cut-out with hairs': cutImage(311, 240),
  'a drawing': drawingImage(300, 220),
};

/** The largest file, in bytes: pixels and a byte a row, 0.1 % and 400 bytes more. */
const largest = (image: Image, alphaOnly: boolean) =>
  (image.width * (alphaOnly ? 1 : 4) + 1) * image.height * 1.001 + 400;

for (const [name, image] of Object.entries(images)) {
  for (const alphaOnly of [false, true]) {
    test(`${name}, ${alphaOnly ? 'alpha only' : 'RGBA'}: every effort decodes to the same pixels`, async (t) => {
      const expected = expectedPixels(image, alphaOnly);
      for (const effort of EFFORTS) {
        const options = { alphaOnly, effort };
        const file = encode(image, options);
        const decoded = decodePng(file);
        t.is(decoded.width, image.width);
        t.is(decoded.height, image.height);
        t.is(decoded.colourType, alphaOnly ? 0 : 6);
        t.true(decoded.pixels.equals(expected), `effort ${effort}`);
        t.true((await readBySharp(file)).equals(expected), `effort ${effort}, libvips`);
        t.deepEqual([...new Set(decoded.chunks.map(({ type }) => type))], ['IHDR', 'IDAT', 'IEND']);
        t.true(file.length <= largest(image, alphaOnly));
      }
    });
  }
}

test('every width around the steps of the loops decodes to the same pixels, with and without padding', (t) => {
  for (let width = 1; width <= 70; width++) {
    for (const image of [
      cutImage(width, 9),
      noiseImage(width, 5, width * 4 + (width % 3)),
      flatImage(width, 4),
      clearImage(width, 3),
    ]) {
      for (const alphaOnly of [false, true]) {
        for (const effort of [1, 3]) {
          const { pixels } = decodePng(encode(image, { alphaOnly, effort }));
          t.true(pixels.equals(expectedPixels(image, alphaOnly)), `${width} wide, effort ${effort}`);
        }
      }
    }
  }
});

const large: Record<string, Image> = {
  'many strips': cutImage(700, 800),
  'rows longer than a stored block': photoImage(17_001, 23),
  'rows longer than a strip': noiseImage(70_003, 3),
  'a long clear image': clearImage(3, 90_001),
};

for (const [name, image] of Object.entries(large)) {
  for (const alphaOnly of [false, true]) {
    test(`${name}, ${alphaOnly ? 'alpha only' : 'RGBA'}: the file does not depend on the threads`, async (t) => {
      for (const effort of [1, 3, 6]) {
        const options = { alphaOnly, effort };
        const file = encode(image, options, 0);
        t.true(decodePng(file).pixels.equals(expectedPixels(image, alphaOnly)));
        t.true((await readBySharp(file)).equals(expectedPixels(image, alphaOnly)));
        t.true(encode(image, options, 1).equals(file));
        t.true(encode(image, options, 3).equals(file));
        t.true(file.length <= largest(image, alphaOnly));
      }
    });
  }
}

test('noise is stored: the file exceeds its pixels and a byte per row by at most 0.1 % and 400 bytes', (t) => {
  for (const image of [noiseImage(1, 1), noiseImage(900, 500)]) {
    for (const effort of EFFORTS) {
      t.true(encode(image, { alphaOnly: false, effort }).length <= largest(image, false));
    }
  }
});

test('a transparent image takes less than a thousandth of its pixels', (t) => {
  const image = clearImage(2000, 1500);
  for (const effort of EFFORTS) {
    t.true(encode(image, { alphaOnly: false, effort }).length < image.data.length / 500);
  }
});

test("photos, cut-outs and gradients are not larger than libvips' files, others at most a tenth", async (t) => {
  const limits = {
    'a photo': 1,
    'a cut-out with hairs': 1,
    gradients: 1,
    'one colour': 1,
    'all transparent': 1.1,
    'a drawing': 1.1,
  };
  for (const [name, limit] of Object.entries(limits)) {
    const image = images[name];
    if (!image) throw new Error(name);
    const { data, width, height } = image;
    const theirs = await sharp(data, { raw: { width, height, channels: 4 } })
      .png({ compressionLevel: 6 })
      .toBuffer();
    t.true(encode(image, plain).length <= theirs.length * limit, name);
  }
});

test('rows of a drawing stay unfiltered, smooth skies and photos do not', (t) => {
  const unfiltered = (image: Image) => decodePng(encode(image, plain)).filters.every((f) => f === 0);
  t.true(unfiltered(drawingImage(300, 220)));
  t.false(unfiltered(photoImage(300, 220)));
  const sky = paint(300, 220, (x, y) => [90 + (x >> 5), 120 + (y >> 4), 200 + ((x + y) >> 6), 255]);
  t.false(unfiltered(sky));
});

test('the least effort has one filter for photos, another where that leaves far less, none for drawings and empty rows', (t) => {
  const used = (image: Image) => {
    const { filters } = decodePng(encode(image, { alphaOnly: false, effort: 1 }));
    return [...new Set(filters)].sort();
  };
  t.deepEqual(used(photoImage(300, 220)), [3]);
  t.deepEqual(used(cutImage(300, 220)), [0, 3]);
  t.deepEqual(used(drawingImage(300, 220)), [0]);
  t.deepEqual(used(clearImage(300, 220)), [0]);
  const columns = paint(300, 220, (x, y) => [(97 * x + 31 * x * x + y) & 255, 128, 0, 255]);
  t.true(used(columns).every((filter) => filter === 2 || filter === 4));
});

test('more effort gives smaller files: 9 below 5 below 3 below 1', (t) => {
  for (const image of [photoImage(400, 300), cutImage(400, 300)]) {
    const size = (effort: number) => encode(image, { alphaOnly: false, effort }).length;
    t.true(size(9) < size(5));
    t.true(size(5) < size(3));
    t.true(size(3) < size(1));
  }
});

test('each of the five filters is used where it predicts best', (t) => {
  const used = new Set(Object.values(images).flatMap((image) => decodePng(encode(image, plain)).filters));
  t.deepEqual([...used].sort(), [0, 1, 2, 3, 4]);
});

test('an ICC profile and a resolution are returned byte for byte, in the order of the specification', async (t) => {
  const source = await sharp({ create: { width: 8, height: 8, channels: 3, background: '#123' } })
    .withIccProfile('srgb')
    .png()
    .toBuffer();
  const { icc } = await sharp(source).metadata();
  if (!icc) throw new Error('libvips wrote no profile');
  const image = cutImage(120, 90);
  const file = encode(image, { ...plain, icc, pixelsPerMetre: [2835, 5669] });
  const metadata = await sharp(file).metadata();
  t.true(metadata.icc?.equals(icc));
  t.is(metadata.density, 72);
  const { chunks, pixels } = decodePng(file);
  t.deepEqual(
    chunks.map(({ type }) => type),
    ['IHDR', 'iCCP', 'pHYs', 'IDAT', 'IEND'],
  );
  t.true(pixels.equals(expectedPixels(image, false)));
  const [, profile, density] = chunks;
  const nameEnd = profile?.data.indexOf(0) ?? -1;
  t.is(profile?.data[nameEnd + 1], 0);
  t.true(inflateStrictly(profile?.data.subarray(nameEnd + 2) ?? Buffer.alloc(0)).equals(icc));
  t.deepEqual(
    [density?.data.readUInt32BE(0), density?.data.readUInt32BE(4), density?.data[8]],
    [2835, 5669, 1],
  );
  const gray = encode(image, { alphaOnly: true, effort: 3, pixelsPerMetre: [11811, 11811] });
  t.is((await sharp(gray).metadata()).density, 300);
});

test('ends with the job that it belongs to', (t) => {
  const image = cutImage(700, 800);
  for (const threads of [0, 2]) {
    t.throws(() => encode(image, plain, threads, true), { message: 'The job was cancelled.' });
    t.notThrows(() => encode(image, plain, threads, false));
  }
});
