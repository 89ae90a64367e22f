import test from 'ava';
import { decodeCover } from '../../../src/image/cover.ts';
import { decode } from '../../../src/image/decode.ts';
import type { ImageError } from '../../../src/image/errors.ts';
import { decodeHeic } from '../../../src/image/heif/decodeHeic.ts';
import { boxesIn, readItems } from '../../../src/image/heif/items.ts';
import { decodeMask } from '../../../src/image/mask.ts';
import { probe } from '../../../src/image/probe.ts';
import { contractLimits, type ProbeLimits } from '../../../src/image/types.ts';
import { p3Profile } from '../../fixtures/files.ts';
import { type HeicName, heic, heicNames } from '../../fixtures/heic.ts';

const limits: ProbeLimits = { ...contractLimits, formats: ['heic'] };

const expected: Readonly<Record<HeicName, readonly [width: number, height: number]>> = {
  plain: [96, 64],
  odd: [75, 51],
  alpha: [96, 64],
  tiled: [300, 200],
  deep: [96, 64],
  gray: [96, 64],
  turned: [96, 64],
};

async function decoded(file: Buffer) {
  const header = await probe(file, limits);
  const { data, width, height } = await decode(file, header, header);
  const at = (x: number, y: number) => [...data.subarray((y * width + x) * 4, (y * width + x) * 4 + 4)];
  return { header, data, width, height, at };
}

const near = (seen: readonly number[], wanted: readonly number[], tolerance = 12) =>
  seen.every((value, i) => Math.abs(value - (wanted[i] ?? 0)) <= tolerance);

const red = [220, 40, 40, 255];
const green = [40, 200, 40, 255];

async function codeOf(file: Buffer, only: ProbeLimits = limits): Promise<string> {
  try {
    const header = await probe(file, only);
    await decode(file, header, header);
    return 'decoded';
  } catch (error) {
    const { code, detail } = error as ImageError;
    return `${code}: ${detail}`;
  }
}

for (const name of heicNames)
  test(`${name}: size and pixels`, async (t) => {
    const { header, width, height, at } = await decoded(heic(name));
    t.deepEqual([width, height], [...expected[name]]);
    t.like(header, {
      format: 'heic',
      orientation: 1,
      depth: name === 'deep' ? 16 : 8,
      hasAlpha: name === 'alpha',
    });
    const [left, right] = [at(5, 5), at(width - 6, 5)];
    if (name === 'gray') {
      t.true(near(left, [94, 94, 94, 255]) && near(right, [134, 134, 134, 255]), `${left} ${right}`);
      return;
    }
    const opaque = (colour: readonly number[]) => (name === 'alpha' ? colour.slice(0, 3) : colour);
    t.true(near(opaque(left), red) && near(opaque(right), green), `${left} ${right}`);
    const [x, y] = [Math.floor(width / 2), Math.floor(height / 2)];
    t.true(near(at(x, y), [40 + (170 * x) / width, 40 + (170 * y) / height, 90, 255]), `${at(x, y)}`);
  });

test('alpha is that of the auxiliary image', async (t) => {
  const { data, width, height } = await decoded(heic('alpha'));
  let [sum, worst] = [0, 0];
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1) {
      const wanted = Math.min(255, Math.max(0, (25.6 - Math.hypot(x - width / 2, y - height / 2)) * 20));
      const error = Math.abs((data[(y * width + x) * 4 + 3] ?? 0) - wanted);
      sum += error;
      worst = Math.max(worst, error);
    }
  t.true(sum / (width * height) < 4 && worst < 90, `${sum / (width * height)} ${worst}`);
});

test('colours that were multiplied by alpha are divided by it', async (t) => {
  const file = heic('alpha');
  const { at } = await decoded(file);
  const header = await probe(file, limits);
  const { data } = await decodeHeic(file, { ...header, premultiplied: true }, {});
  const place = [...data].findIndex((value, i) => i % 4 === 3 && value > 60 && value < 200) - 3;
  const [x, y] = [(place / 4) % 96, Math.floor(place / 4 / 96)];
  const [r = 0, g = 0, b = 0, a = 0] = at(x, y);
  const divided = [r, g, b].map((value) => Math.min(255, Math.round((value * 255) / a)));
  t.deepEqual([...data.subarray(place, place + 4)], [...divided, a]);
});

/** The file with one byte of the body of the first property of this type replaced. */
function withByte(file: Buffer, type: string, at: number, value: number): Buffer {
  const changed = Buffer.from(file);
  changed.writeUInt8(value, changed.indexOf(type, 0, 'latin1') + 4 + at);
  return changed;
}

test('a turned image is turned once, whatever EXIF says about it', async (t) => {
  const file = heic('turned');
  const exif = file.indexOf('011200030000000100', 0, 'hex') + 9;
  t.is(file.readUInt8(exif), 6, 'as phones write it: EXIF and irot say the same');
  for (const orientation of [1, 3, 6, 8]) {
    const changed = Buffer.from(file);
    changed.writeUInt8(orientation, exif);
    const { width, height, at } = await decoded(changed);
    t.deepEqual([width, height], [96, 64]);
    t.true(near(at(5, 5), red) && near(at(90, 5), green), `${orientation}`);
  }
});

test('every irot turns as the standard says', async (t) => {
  // Stored on its side, the red square is at the bottom left; each turn is a quarter against the clock.
  const corners = [
    { size: [64, 96], place: [5, 90] },
    { size: [96, 64], place: [90, 58] },
    { size: [64, 96], place: [58, 5] },
    { size: [96, 64], place: [5, 5] },
  ] as const;
  for (const [
    angle,
    {
      size,
      place: [x, y],
    },
  ] of corners.entries()) {
    const { width, height, at } = await decoded(withByte(heic('turned'), 'irot', 0, angle));
    t.deepEqual([width, height], [...size]);
    t.true(near(at(x, y), red), `${angle}: ${at(x, y)}`);
  }
});

test('a mirrored image is mirrored once', async (t) => {
  // The turn becomes a mirror: imir about the vertical axis, of the image as it is stored.
  const file = heic('turned');
  const stored = await decoded(withByte(file, 'irot', 0, 0));
  const mirrored = Buffer.from(file);
  mirrored.write('imir', mirrored.indexOf('irot'), 'latin1');
  const { width, height, at } = await decoded(withByte(mirrored, 'imir', 0, 1));
  t.deepEqual([width, height], [64, 96]);
  t.true(near(stored.at(5, 90), red));
  t.true(near(at(58, 90), red), `${at(58, 90)}`);
});

test('an image is reduced while it is decoded', async (t) => {
  const file = heic('tiled');
  const header = await probe(file, limits);
  const { data, width, height } = await decode(file, header, { width: 30, height: 20 });
  t.deepEqual([width, height, data.length], [30, 20, 2400]);
  const middle = (10 * 30 + 15) * 4;
  t.true(near([...data.subarray(middle, middle + 4)], [125, 125, 90, 255]));
});

test('a background covers the canvas', async (t) => {
  const file = heic('tiled');
  const header = await probe(file, limits);
  const { data } = await decodeCover(file, header, { width: 60, height: 40 });
  t.true(near([...data.subarray(4 * 60 * 3 + 12, 4 * 60 * 3 + 16)], red, 14));
  // A background in Display P3 behind an sRGB image: its red becomes brighter.
  const icc = await p3Profile();
  const converted = await decodeCover(file, { ...header, icc }, { width: 60, height: 40 });
  const pixel = [...converted.data.subarray(4 * 60 * 3 + 12, 4 * 60 * 3 + 16)];
  t.true((pixel[0] ?? 0) > 232 && (pixel[1] ?? 255) < 32, `${pixel}`);
  const kept = await decodeCover(file, { ...header, icc }, { width: 60, height: 40 }, { icc });
  t.deepEqual(kept.data, data);
});

test('a mask is its alpha or its lightness', async (t) => {
  for (const name of ['alpha', 'gray'] as const) {
    const file = heic(name);
    const { header, data } = await decoded(file);
    const mask = await decodeMask(file, header, { width: 96, height: 64 });
    t.deepEqual(
      mask.data,
      data.filter((_, i) => i % 4 === (name === 'alpha' ? 3 : 0)),
    );
  }
});

test('files that lie about sizes, tiles or places are refused before they are decoded', async (t) => {
  const size = (file: Buffer, width: number) => {
    const changed = Buffer.from(file);
    changed.writeUInt32BE(width, changed.indexOf('ispe', 0, 'latin1') + 8);
    return changed;
  };
  t.regex(
    await codeOf(size(heic('plain'), 2 ** 31)),
    /^resolution_too_high: Input image has 137439 megapixels/,
  );
  t.regex(await codeOf(size(heic('plain'), 0)), /^invalid_dimensions/);
  t.regex(await codeOf(size(heic('plain'), 95)), /^failed_to_read_image/);
  const tiled = heic('tiled');
  const grid = tiled.indexOf('idat') + 4;
  for (const [at, value] of [
    [2, 2],
    [3, 200],
    [5, 0x2d],
  ] as const) {
    const changed = Buffer.from(tiled);
    changed.writeUInt8(value, grid + at);
    t.regex(await codeOf(changed), /^failed_to_read_image: The tiles of the image do not fit/);
  }
  // The size of the tiles is the second one of the file.
  const tiles = Buffer.from(tiled);
  tiles.writeUInt32BE(5000, tiled.indexOf('ispe', tiled.indexOf('ispe') + 4) + 8);
  t.regex(await codeOf(tiles), /^failed_to_read_image: The tiles of the image are larger/);
  const nested = Buffer.from(tiled);
  nested.write('grid', nested.indexOf('hvc1'), 'latin1');
  t.regex(await codeOf(nested), /^failed_to_read_image: A tile of the image is not coded in HEVC/);
  const other = heic('plain');
  other.write('av01', other.indexOf('hvc1'), 'latin1');
  t.regex(await codeOf(other), /^failed_to_read_image: The file holds an image of type "av01"/);
  const small = { ...limits, maxPixels: 96 * 64 - 1 };
  t.regex(await codeOf(heic('alpha'), small), /^resolution_too_high/);
});

test('files that end early are refused; none is read beyond its end', async (t) => {
  for (const name of heicNames) {
    const file = heic(name);
    for (let length = 30; length < file.length; length += Math.ceil(file.length / 12)) {
      const outcome = await codeOf(file.subarray(0, length));
      t.regex(outcome, /^(?:invalid_dimensions|failed_to_read_image)/, `${name} ${length}`);
    }
  }
  t.is(
    await codeOf(heic('plain').subarray(0, -40)),
    'failed_to_read_image: The file ends before the image is complete.',
  );
});

test('a damaged image is an error of the image, and the next one is decoded', async (t) => {
  const file = heic('plain');
  file.fill(0x55, file.indexOf('mdat') + 8);
  t.is(await codeOf(file), 'failed_to_read_image: The image data could not be decoded.');
  t.is(await codeOf(heic('plain')), 'decoded');
});

test('decoding ends with its signal and its time', async (t) => {
  const file = heic('tiled');
  const header = await probe(file, limits);
  const abort = new AbortController();
  const running = decodeHeic(file, header, { signal: abort.signal });
  abort.abort(new Error('client gone'));
  await t.throwsAsync(running, { message: 'client gone' });
  await t.throwsAsync(decodeHeic(file, header, { signal: abort.signal }), { message: 'client gone' });
  await t.throwsAsync(decodeHeic(file, header, { timeoutSeconds: 0.001 }), {
    message: /could not be processed in time/,
  });
  t.is(file.length, heic('tiled').length, 'the file stays with its owner');
});

test('items have their properties, data and references', (t) => {
  const { items, primary, references } = readItems(heic('tiled'));
  t.is(items.get(primary)?.type, 'grid');
  t.is(items.get(primary)?.data().toString('hex'), '00000102012c00c8');
  t.deepEqual(references, [{ type: 'dimg', from: 1, to: [2, 3, 4, 5, 6, 7] }]);
  t.is([...items.values()].filter(({ type, complete }) => type === 'hvc1' && complete).length, 6);
  t.throws(() => readItems(Buffer.from('0000000cffff0000', 'hex')), { instanceOf: RangeError });
  t.throws(() => [...boxesIn(Buffer.from('000000046d657461', 'hex'))], { instanceOf: RangeError });
});
