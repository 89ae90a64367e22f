import test from 'ava';
import sharp from 'sharp';
import { BAD_INPUT, CANCELLED, loadPng, type PngOptions } from './png_addon.ts';
import {
  clearPicture,
  cutPicture,
  drawingPicture,
  expectedPixels,
  flatPicture,
  gradientPicture,
  noisePicture,
  type Picture,
  paint,
  photoPicture,
} from './png_pictures.ts';
import { decodePng, inflateStrictly } from './png_reference.ts';

const png = loadPng();
const EFFORTS = [1, 2, 3, 4, 5, 6, 7, 8, 9];
const plain: PngOptions = { alphaOnly: false, effort: 3 };

/** The Status code a call ends with. */
function codeOf(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
  return undefined;
}

const encode = (picture: Picture, options: PngOptions, threads = 1, stopAfter = -1): Buffer =>
  png.encodePng(picture.data, picture.width, picture.height, picture.stride, options, threads, stopAfter);

/** Pixels as libvips reads them. */
async function readBySharp(file: Buffer): Promise<Buffer> {
  const metadata = await sharp(file).metadata();
  const image = sharp(file, { ignoreIcc: true, limitInputPixels: false });
  return (metadata.channels === 1 ? image.toColourspace('b-w') : image).raw().toBuffer();
}

const pictures: Record<string, Picture> = {
  'one pixel': noisePicture(1, 1),
  'one column': noisePicture(1, 301),
  'one row': noisePicture(307, 1),
  'odd sides': noisePicture(13, 7),
  'rows with padding': noisePicture(21, 19, 21 * 4 + 11),
  noise: noisePicture(150, 131),
  'one colour': flatPicture(331, 277),
  'all transparent': clearPicture(400, 301),
  gradients: gradientPicture(299, 203),
  'a photo': photoPicture(257, 190),
  'a cut-out with hairs': cutPicture(311, 240),
  'a drawing': drawingPicture(300, 220),
};

for (const [name, picture] of Object.entries(pictures)) {
  for (const alphaOnly of [false, true]) {
    test(`${name}, ${alphaOnly ? 'alpha only' : 'RGBA'}: every effort decodes to the same pixels`, async (t) => {
      const expected = expectedPixels(picture, alphaOnly);
      for (const effort of EFFORTS) {
        const options = { alphaOnly, effort };
        const file = encode(picture, options);
        const decoded = decodePng(file);
        t.is(decoded.width, picture.width);
        t.is(decoded.height, picture.height);
        t.is(decoded.colourType, alphaOnly ? 0 : 6);
        t.true(decoded.pixels.equals(expected), `effort ${effort}`);
        t.true((await readBySharp(file)).equals(expected), `effort ${effort}, libvips`);
        t.deepEqual([...new Set(decoded.chunks.map(({ type }) => type))], ['IHDR', 'IDAT', 'IEND']);
        t.true(file.length <= png.pngBound(picture.width, picture.height, options));
      }
    });
  }
}

const large: Record<string, Picture> = {
  'many strips': cutPicture(700, 800),
  'rows longer than a stored block': photoPicture(17_001, 23),
  'rows longer than a strip': noisePicture(70_003, 3),
  'a long clear picture': clearPicture(3, 90_001),
};

for (const [name, picture] of Object.entries(large)) {
  for (const alphaOnly of [false, true]) {
    test(`${name}, ${alphaOnly ? 'alpha only' : 'RGBA'}: the file does not depend on the threads`, async (t) => {
      for (const effort of [1, 3, 6]) {
        const options = { alphaOnly, effort };
        const file = encode(picture, options, 0);
        t.true(decodePng(file).pixels.equals(expectedPixels(picture, alphaOnly)));
        t.true((await readBySharp(file)).equals(expectedPixels(picture, alphaOnly)));
        t.true(encode(picture, options, 1).equals(file));
        t.true(encode(picture, options, 3).equals(file));
        t.true(file.length <= png.pngBound(picture.width, picture.height, options));
      }
    });
  }
}

test('noise is stored: the file is at most 0.1 % and 400 bytes larger than its pixels and a byte a row', (t) => {
  for (const picture of [noisePicture(1, 1), noisePicture(900, 500)]) {
    const raw = (picture.width * 4 + 1) * picture.height;
    for (const effort of EFFORTS) {
      const size = encode(picture, { alphaOnly: false, effort }).length;
      t.true(size <= raw * 1.001 + 400);
      t.true(png.pngBound(picture.width, picture.height, plain) <= raw * 1.001 + 400);
    }
  }
});

test('a transparent picture takes less than a thousandth of its pixels', (t) => {
  const picture = clearPicture(2000, 1500);
  for (const effort of EFFORTS) {
    t.true(encode(picture, { alphaOnly: false, effort }).length < picture.data.length / 500);
  }
});

test('photos, cut-outs and gradients are not larger than libvips makes them, the rest a tenth at most', async (t) => {
  const limits = {
    'a photo': 1,
    'a cut-out with hairs': 1,
    gradients: 1,
    'one colour': 1,
    'all transparent': 1.1,
    'a drawing': 1.1,
  };
  for (const [name, limit] of Object.entries(limits)) {
    const picture = pictures[name];
    if (!picture) throw new Error(name);
    const { data, width, height } = picture;
    const theirs = await sharp(data, { raw: { width, height, channels: 4 } })
      .png({ compressionLevel: 6 })
      .toBuffer();
    t.true(encode(picture, plain).length <= theirs.length * limit, name);
  }
});

test('rows of a drawing stay unfiltered, smooth skies and photos do not', (t) => {
  const unfiltered = (picture: Picture) => decodePng(encode(picture, plain)).filters.every((f) => f === 0);
  t.true(unfiltered(drawingPicture(300, 220)));
  t.false(unfiltered(photoPicture(300, 220)));
  const sky = paint(300, 220, (x, y) => [90 + (x >> 5), 120 + (y >> 4), 200 + ((x + y) >> 6), 255]);
  t.false(unfiltered(sky));
});

test('more effort pays: 9 is smaller than 5, 5 than 3, 3 than 1', (t) => {
  for (const picture of [photoPicture(400, 300), cutPicture(400, 300)]) {
    const size = (effort: number) => encode(picture, { alphaOnly: false, effort }).length;
    t.true(size(9) < size(5));
    t.true(size(5) < size(3));
    t.true(size(3) < size(1));
  }
});

test('all five filters are used where each predicts best', (t) => {
  const used = new Set(
    Object.values(pictures).flatMap((picture) => decodePng(encode(picture, plain)).filters),
  );
  t.deepEqual([...used].sort(), [0, 1, 2, 3, 4]);
});

test('an ICC profile and a resolution come back byte for byte, in the order of the specification', async (t) => {
  const source = await sharp({ create: { width: 8, height: 8, channels: 3, background: '#123' } })
    .withIccProfile('srgb')
    .png()
    .toBuffer();
  const { icc } = await sharp(source).metadata();
  if (!icc) throw new Error('libvips wrote no profile');
  const picture = cutPicture(120, 90);
  const file = encode(picture, { ...plain, icc, pixelsPerMetre: [2835, 5669] });
  const metadata = await sharp(file).metadata();
  t.true(metadata.icc?.equals(icc));
  t.is(metadata.density, 72);
  const { chunks, pixels } = decodePng(file);
  t.deepEqual(
    chunks.map(({ type }) => type),
    ['IHDR', 'iCCP', 'pHYs', 'IDAT', 'IEND'],
  );
  t.true(pixels.equals(expectedPixels(picture, false)));
  const [, profile, density] = chunks;
  const nameEnd = profile?.data.indexOf(0) ?? -1;
  t.is(profile?.data[nameEnd + 1], 0);
  t.true(inflateStrictly(profile?.data.subarray(nameEnd + 2) ?? Buffer.alloc(0)).equals(icc));
  t.deepEqual(
    [density?.data.readUInt32BE(0), density?.data.readUInt32BE(4), density?.data[8]],
    [2835, 5669, 1],
  );
  const gray = encode(picture, { alphaOnly: true, effort: 3, pixelsPerMetre: [11811, 11811] });
  t.is((await sharp(gray).metadata()).density, 300);
});

test('stop is asked before every strip and ends the work', (t) => {
  const picture = cutPicture(700, 800);
  for (const threads of [0, 2]) {
    for (const polls of [0, 1, 4]) {
      t.is(
        codeOf(() => encode(picture, plain, threads, polls)),
        CANCELLED,
      );
    }
    t.notThrows(() => encode(picture, plain, threads, 1000));
  }
});

test('refuses what is no RGBA picture, an unknown effort and rows beyond the limit', (t) => {
  const { data } = noisePicture(2, 2);
  const refuse = (width: number, height: number, options: PngOptions) =>
    t.is(
      codeOf(() => png.encodePng(data, width, height, 8, options, 0, -1)),
      BAD_INPUT,
    );
  refuse(0, 2, plain);
  refuse(2, 0, plain);
  refuse(-1, 2, plain);
  refuse(2 ** 28 + 1, 1, plain);
  refuse(2, 2, { ...plain, effort: 0 });
  refuse(2, 2, { ...plain, effort: 10 });
});
