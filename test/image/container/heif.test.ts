import test from 'ava';
import sharp from 'sharp';
import { decode } from '../../../src/image/decode.ts';
import { configureLibvips } from '../../../src/image/libvips.ts';
import { probe } from '../../../src/image/probe.ts';
import { contractLimits, type ProbeLimits } from '../../../src/image/types.ts';

const limits: ProbeLimits = { ...contractLimits, formats: ['avif'] };
test.before(() => {
  configureLibvips(limits);
});

const [width, height] = [40, 30];
const image = () =>
  sharp({ create: { width, height, channels: 4, background: '#81d4fa80' } })
    .avif()
    .toBuffer();

function box(type: string, ...content: readonly (Buffer | readonly number[])[]): Buffer {
  const body = Buffer.concat(content.map((each) => Buffer.from(each)));
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + body.length);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, body]);
}
const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const brand = box('ftyp', Buffer.from('avif\0\0\0\0mif1miaf', 'latin1'));
const full = (version: number) => [version, 0, 0, 0];
const file = (...boxes: readonly Buffer[]) => Buffer.concat([brand, ...boxes]);
const meta = (...boxes: readonly Buffer[]) => box('meta', full(0), ...boxes);

async function refusal(bytes: Buffer): Promise<string> {
  return probe(bytes, limits).then(
    () => 'read',
    (error: unknown) => (error as { message: string }).message,
  );
}

test('too many boxes are refused at any level; a few thousand are accepted', async (t) => {
  const avif = await image();
  const free = (count: number) => Buffer.alloc(8 * count, box('free'));
  t.is((await probe(Buffer.concat([avif, free(5000)]), limits)).width, width);
  t.regex(await refusal(Buffer.concat([avif, free(10_001)])), /more than 10000 boxes/);
  t.regex(await refusal(file(meta(free(10_001)))), /boxes/);
  t.regex(await refusal(file(meta(box('iprp', box('ipco', free(10_001)))))), /boxes/);
  t.regex(await refusal(file(box('moov', box('trak', box('mdia', free(10_001)))))), /boxes/);
  // Of 64-bit length.
  const wide = Buffer.from([...u32(1), ...Buffer.from('free'), ...u32(0), ...u32(16)]);
  t.regex(await refusal(file(Buffer.alloc(16 * 10_001, wide))), /boxes/);
});

test('boxes in boxes are refused', async (t) => {
  let deep = box('free');
  for (let i = 0; i < 20; i++) deep = box('moov', deep);
  t.regex(await refusal(file(deep)), /levels/);
});

test('items and their places are bounded', async (t) => {
  const items = [
    box('iinf', full(0), [0x03, 0xe9]),
    box('iinf', full(1), u32(0x10000)),
    box('ipma', full(0), u32(1001)),
    box('iloc', full(0), [0x44, 0, 0x03, 0xe9]),
    box('iloc', full(2), [0x44, 0], u32(70_000)),
  ];
  for (const each of items)
    t.regex(await refusal(file(meta(each))), /more than 1000 items/, each.toString('latin1'));
  // Two items of 6000 extents of 8 bytes.
  const item = Buffer.concat([Buffer.from([0, 1, 0, 0, 0x17, 0x70]), Buffer.alloc(6000 * 8)]);
  const places = box('iloc', full(0), [0x44, 0, 0, 2], item, item);
  t.regex(await refusal(file(meta(places))), /more than 10000 extents/);
});

test('files as programs write them are read, and cut files end', async (t) => {
  const noise = Buffer.from(
    Array.from({ length: 300 * 200 * 4 }, (_, i) => (Math.imul(i, 2654435761) >>> 13) & 255),
  );
  const files = {
    plain: await image(),
    profile: await sharp(noise, { raw: { width: 300, height: 200, channels: 4 } })
      .withIccProfile('p3')
      .withMetadata({ orientation: 6, density: 300 })
      .avif({ effort: 0 })
      .toBuffer(),
  };
  for (const [name, bytes] of Object.entries(files)) {
    const header = await probe(bytes, limits);
    t.is((await decode(bytes, header, header)).data.length, header.width * header.height * 4, name);
    for (let length = 12; length < bytes.length; length += Math.ceil(bytes.length / 60)) {
      const outcome = await probe(bytes.subarray(0, length), limits).then(
        () => 'read',
        (error: unknown) => (error as { code: string }).code,
      );
      t.regex(outcome, /^(?:read|failed_to_read_image|invalid_dimensions|invalid_file_type)$/);
    }
  }
});

/** A grid of `rows` by as many columns that all name one tile, by so many references. */
async function grid(rows: number, tile: number, shown: number, references = rows * rows): Promise<Buffer> {
  const coded = await sharp({ create: { width: tile, height: tile, channels: 3, background: '#81d4fa' } })
    .avif({ effort: 0 })
    .toBuffer();
  const boxOf = (type: string) => {
    const at = coded.indexOf(type) - 4;
    return coded.subarray(at, at + coded.readUInt32BE(at));
  };
  const u16 = (value: number) => [value >> 8, value & 255];
  const data = boxOf('mdat').subarray(8);
  const shape = Buffer.concat([Buffer.from([0, 1, rows - 1, rows - 1]), u32(shown), u32(shown)]);
  const size = (side: number) => box('ispe', full(0), u32(side), u32(side));
  const properties = box('ipco', size(shown), size(tile), boxOf('av1C'), box('pixi', full(0), [3, 8, 8, 8]));
  const associations = box('ipma', full(0), u32(2), [0, 1, 2, 1, 4], [0, 2, 3, 2, 0x83, 4]);
  const item = (id: number, type: string) => box('infe', full(2), u16(id), u16(0), Buffer.from(`${type}\0`));
  const items = box('iinf', full(0), u16(2), item(1, 'grid'), item(2, 'av01'));
  const tiles = Array.from({ length: references }, () => u16(2)).flat();
  const reference = box('iref', full(0), box('dimg', u16(1), u16(references), tiles));
  const handler = box('hdlr', full(0), u32(0), Buffer.from('pict'), Buffer.alloc(13));
  const build = (at: number) => {
    const place = (id: number, from: number, bytes: number) =>
      Buffer.concat([Buffer.from([...u16(id), 0, 0, 0, 1]), u32(from), u32(bytes)]);
    const places = [place(1, at, shape.length), place(2, at + shape.length, data.length)];
    const location = box('iloc', full(0), [0x44, 0, 0, 2], ...places);
    const parts = [handler, box('pitm', full(0), u16(1)), location, items, reference];
    return file(meta(...parts, box('iprp', properties, associations)));
  };
  return Buffer.concat([build(build(0).length + 8), box('mdat', shape, data)]);
}

test('a grid whose tiles are larger than the image, or more than it has places for, is refused', async (t) => {
  const whole = await grid(2, 64, 128);
  const header = await probe(whole, limits);
  t.is((await decode(whole, header, header)).data.length, 128 * 128 * 4);
  t.regex(await refusal(await grid(16, 128, 128)), /larger than the image/);
  t.regex(await refusal(await grid(2, 64, 128, 5000)), /do not fit together/);
});
