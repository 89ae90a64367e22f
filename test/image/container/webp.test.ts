import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import sharp from 'sharp';
import { decode } from '../../../src/image/decode.ts';
import { configureLibvips } from '../../../src/image/libvips.ts';
import { probe } from '../../../src/image/probe.ts';
import { contractLimits } from '../../../src/image/types.ts';

test.before(() => {
  configureLibvips(contractLimits);
});

const image = () =>
  sharp({ create: { width: 40, height: 30, channels: 3, background: '#81d4fa' } })
    .withIccProfile('p3')
    .webp();
const withChunks = (webp: Buffer, count: number) => {
  const file = Buffer.concat([webp, Buffer.alloc(8 * count, Buffer.from('abcd\0\0\0\0'))]);
  file.writeUInt32LE(file.length - 8, 4);
  return file;
};

test('an excessive number of chunks is refused, a few are accepted', async (t) => {
  const webp = await image().toBuffer();
  t.is((await probe(withChunks(webp, 5000), contractLimits)).width, 40);
  await t.throwsAsync(probe(withChunks(webp, 10_001), contractLimits), { code: 'failed_to_read_image' });
});

test('bytes after the end of an image are ignored', async (t) => {
  const file = Buffer.concat([await image().toBuffer(), Buffer.alloc(8 * 20_000)]);
  t.is((await probe(file, contractLimits)).width, 40);
});

/** Bits, the least significant first. */
class BitWriter {
  readonly #bytes: number[] = [];
  #bits = 0;

  put(value: number, count: number): void {
    for (let i = 0; i < count; i++, this.#bits++) {
      if (this.#bits % 8 === 0) this.#bytes.push(0);
      const last = this.#bytes.length - 1;
      this.#bytes[last] = (this.#bytes[last] ?? 0) | (((value >> i) & 1) << (this.#bits % 8));
    }
  }

  /** A prefix code of the symbol 0 alone, which takes no bits. */
  single(): void {
    this.put(1, 1);
    this.put(0, 3);
  }

  bytes(): Buffer {
    return Buffer.from(this.#bytes);
  }
}

/** An image of one colour whose entropy image has one pixel, always the same, for each four by four pixels. */
function groups(side: number, transformed = false): Buffer {
  const bits = new BitWriter();
  bits.put(0x2f, 8);
  for (const each of [side, side]) bits.put(each - 1, 14);
  bits.put(0, 4);
  if (transformed) {
    // A predictor for each four by four pixels, coded by five codes that take no bits.
    bits.put(1, 1);
    bits.put(0, 2);
    bits.put(0, 3);
    bits.put(0, 1);
    for (let code = 0; code < 5; code++) bits.single();
  }
  bits.put(0, 2);
  bits.put(1, 1);
  bits.put(0, 3);
  bits.put(0, 1);
  for (let code = 0; code < 10; code++) bits.single();
  const data = bits.bytes();
  const file = Buffer.concat([
    Buffer.from('RIFF\0\0\0\0WEBPVP8L\0\0\0\0'),
    data,
    Buffer.alloc(data.length % 2),
  ]);
  file.writeUInt32LE(file.length - 8, 4);
  file.writeUInt32LE(data.length, 16);
  return file;
}

for (const transformed of [false, true])
  test(`groups of codes are bounded, ${transformed ? 'behind' : 'without'} a transform`, async (t) => {
    const some = groups(360, transformed);
    const header = await probe(some, contractLimits);
    t.is((await decode(some, header, header)).data.length, 360 * 360 * 4);
    await t.throwsAsync(probe(groups(400, transformed), contractLimits), {
      message: /more than 8192 groups/,
    });
  });

test('an image whose transforms take no bits for their pixels is read without going through them', async (t) => {
  let [turns, done] = [0, false];
  const refused = t
    .throwsAsync(probe(groups(7000, true), contractLimits), { message: /more than 8192 groups/ })
    .finally(() => {
      done = true;
    });
  for (; !done; turns++) await turn();
  await refused;
  t.true(turns < 100, `${turns} turns`);
});

test('lossless images of every effort, with few and many colours and with alpha, are accepted', async (t) => {
  const [width, height] = [400, 300];
  const at = (i: number) => [i % width, Math.floor(i / width)] as const;
  const kinds: Readonly<Record<string, (x: number, y: number) => readonly number[]>> = {
    photo: (x, y) => [128 + 90 * Math.sin(x / 40), (x * y) / 500, 128 + 60 * Math.cos((x + y) / 9), 255],
    noise: (x, y) => [
      Math.imul(x * 7919 + y, 2654435761) >>> 24,
      (x * 31) & 255,
      (y * 17) & 255,
      (x + y) & 255,
    ],
    icon: (x, y) => [(x >> 6) * 20, (y >> 6) * 20, 0, (x >> 5) % 2 === 0 ? 255 : 0],
  };
  for (const [name, colour] of Object.entries(kinds)) {
    const data = Buffer.from(Array.from({ length: width * height }, (_, i) => colour(...at(i))).flat());
    const image = () => sharp(data, { raw: { width, height, channels: 4 } });
    for (const effort of [0, 4, 6])
      for (const options of [
        { lossless: true },
        { nearLossless: true },
        { quality: 50, alphaQuality: 100 },
      ]) {
        const bytes = await image()
          .webp({ ...options, effort })
          .toBuffer();
        const header = await probe(bytes, contractLimits);
        t.is((await decode(bytes, header, header)).data.length, data.length, `${name} ${effort}`);
      }
  }
});

test('an image has one coded part and its alpha', async (t) => {
  const webp = await sharp({ create: { width: 20, height: 20, channels: 4, background: '#81d4fa80' } })
    .webp({ quality: 50 })
    .toBuffer();
  const at = webp.indexOf('ALPH');
  const alpha = webp.subarray(at, at + 8 + 2 * Math.ceil(webp.readUInt32LE(at + 4) / 2));
  const more = Buffer.concat([webp.subarray(0, at), alpha, alpha, webp.subarray(at)]);
  more.writeUInt32LE(more.length - 8, 4);
  await t.throwsAsync(probe(more, contractLimits), { code: 'failed_to_read_image' });
});
