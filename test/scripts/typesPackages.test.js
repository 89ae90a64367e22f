import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { deflateSync } from 'node:zlib';
import test from 'ava';
import sharp from 'sharp';
import { cutOut, laidOver } from '../../tools/subject-types/grounds.js';
import { seeded } from '../../tools/subject-types/images.js';
import { packagePhotos } from '../../tools/subject-types/packages.js';
import { fileInCollection } from '../../tools/subject-types/rcc.js';

const u16 = (value) => Buffer.from([value >> 8, value & 255]);
const u32 = (value) => Buffer.concat([u16(value >>> 16), u16(value & 0xffff)]);
const name = (text) => Buffer.concat([u16(text.length), u32(0), Buffer.from(text, 'utf16le').swap16()]);

/** A collection of the second version: /a/plain and /a/packed. */
function collection(plain, packed) {
  const names = ['', 'a', 'plain', 'packed'].map(name);
  const nameAt = names.map((_, at) => Buffer.concat(names.slice(0, at)).length);
  const sized = (bytes) => Buffer.concat([u32(bytes.length), bytes]);
  const first = sized(plain);
  const second = sized(Buffer.concat([u32(packed.length), deflateSync(packed)]));
  const stamp = Buffer.alloc(8);
  const folder = (of, count, child) =>
    Buffer.concat([u32(nameAt[of]), u16(2), u32(count), u32(child), stamp]);
  const file = (of, flags, at) =>
    Buffer.concat([u32(nameAt[of]), u16(flags), u16(0), u16(0), u32(at), stamp]);
  const tree = [folder(0, 1, 1), folder(1, 2, 2), file(2, 0, 0), file(3, 1, first.length)];
  const parts = [Buffer.concat(tree), first, second, ...names];
  const head = 20;
  const data = head + parts[0].length;
  const offsets = [2, head, data, data + first.length + second.length].map(u32);
  return Buffer.concat([Buffer.from('qres'), ...offsets, ...parts]);
}

test('files in a Qt resource collection are read, plain and deflated', async (t) => {
  const file = path.join(await mkdtemp(path.join(tmpdir(), 'rcc-')), 'some.rcc');
  const [plain, packed] = [Buffer.from('as it is'), Buffer.alloc(1000, 'again ')];
  await writeFile(file, collection(plain, packed));
  t.deepEqual(fileInCollection(file, 'a/plain'), plain);
  t.deepEqual(fileInCollection(file, 'a/packed'), packed);
  t.throws(() => fileInCollection(file, 'a/none'), { message: /a\/none is not in/ });
  await writeFile(file, 'something else');
  t.throws(() => fileInCollection(file, 'a/plain'), { message: /not a Qt resource collection/ });
});

test('a cut-out is composited over every kind of ground, opaque, reproducibly from the same seed', async (t) => {
  const ground = await sharp({ create: { width: 90, height: 60, channels: 3, background: '#0000ff' } })
    .png()
    .toBuffer();
  // Half a red square.
  const image = { data: new Uint8Array(40 * 40 * 4), width: 40, height: 40 };
  for (let at = 0; at < 40 * 40; at++) if (at % 40 < 20) image.data.set([255, 0, 0, 255], at * 4);
  const photos = [{ open: () => ground }];
  for (const kind of ['white', 'plain', 'blurred', 'sharp']) {
    for (const seed of ['one', 'two', 'three']) {
      const laid = await laidOver(kind, image, photos, seeded(seed));
      const { data, width, height } = laid.image;
      t.true(width <= 512 && height <= 512);
      t.deepEqual(
        [laid.matte.width, laid.matte.height, laid.matte.data.length],
        [width, height, width * height],
      );
      let [red, opaque, elsewhere] = [0, 0, 0];
      for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] === 255) opaque += 1;
        const isRed = data[at] > 250 && data[at + 1] < 5 && data[at + 2] < 5;
        if (isRed) red += 1;
        // The subject keeps its own colour.
        if ((laid.matte.data[at / 4] === 1) !== isRed) elsewhere += 1;
      }
      t.is(opaque, width * height);
      t.true(elsewhere <= 0.01 * width * height, `${kind} ${seed}: ${elsewhere}`);
      t.true(red > 0.04 * width * height && red < 0.5 * width * height, `${kind} ${seed}: ${red}`);
      t.deepEqual((await laidOver(kind, image, photos, seeded(seed))).image.data, data);
    }
  }
});

test('the subject of a photo is the part under its matte, cropped to its box', async (t) => {
  const image = { data: new Uint8Array(80 * 60 * 4).fill(255), width: 80, height: 60 };
  // A matte of another size: the right half without its uppermost quarter.
  const matte = { data: new Float32Array(40 * 40), width: 40, height: 40 };
  for (let at = 0; at < matte.data.length; at++) if (at % 40 >= 20 && at >= 40 * 10) matte.data[at] = 1;
  const subject = await cutOut(image, matte);
  t.deepEqual([subject.width, subject.height], [40, 45]);
  const alphas = subject.data.filter((_, at) => at % 4 === 3);
  t.true(alphas.every((alpha) => alpha > 0));
  t.true(alphas.filter((alpha) => alpha === 255).length > 0.9 * alphas.length);
  for (const alpha of [0, 0.01])
    t.is(await cutOut(image, { ...matte, data: matte.data.fill(alpha) }), undefined);
});

test('every image of the table has a type and a package', (t) => {
  const photos = packagePhotos('/packages');
  const types = ['person', 'product', 'animal', 'car', 'transportation', 'graphic', 'other'];
  for (const { name: each, type, set } of photos)
    t.true(types.includes(type) && each.startsWith(`${set}/`), each);
  t.is(new Set(photos.map((photo) => photo.name)).size, photos.length);
  t.throws(() => photos.find(({ set }) => set === 'gcompris-qt-data').open(), { code: 'ENOENT' });
});
