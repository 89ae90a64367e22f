import test from 'ava';
import sharp from 'sharp';
import { decode } from '../../../src/image/decode.ts';
import { configureLibvips } from '../../../src/image/libvips.ts';
import { probe } from '../../../src/image/probe.ts';
import { contractLimits, type ProbeLimits } from '../../../src/image/types.ts';

const limits: ProbeLimits = { ...contractLimits, formats: ['gif'] };
test.before(() => {
  configureLibvips(limits);
});

const [width, height] = [40, 30];
const image = () =>
  sharp({ create: { width, height, channels: 3, background: '#81d4fa' } })
    .gif()
    .toBuffer();
const before = (gif: Buffer, bytes: Buffer) => Buffer.concat([gif.subarray(0, -1), bytes, Buffer.from(';')]);
const many = (count: number, bytes: Buffer) => Buffer.alloc(count * bytes.length, bytes);

/** One pixel without image data. */
const frame = Buffer.from('2c00000000010001000002' + '00', 'hex');
const comment = Buffer.from('21fe00', 'hex');
const refused = { code: 'failed_to_read_image' } as const;

test('frames and extensions without end are refused, some are not', async (t) => {
  const gif = await image();
  for (const block of [frame, comment]) {
    await t.throwsAsync(probe(before(gif, many(20_001, block)), limits), refused);
    const some = before(gif, many(5000, block));
    const header = await probe(some, limits);
    t.like(header, { width, height });
    t.is((await decode(some, header, header)).data.length, width * height * 4);
  }
});

test('long extensions, bytes behind the end, and colour tables are passed over', async (t) => {
  const gif = await image();
  const pieces = Buffer.concat([
    Buffer.from('21fe', 'hex'),
    many(3_000_000, Buffer.from([1, 0x2c])),
    Buffer.alloc(1),
  ]);
  t.is((await probe(before(gif, pieces), limits)).width, width);
  t.is((await probe(Buffer.concat([gif, many(30_000, frame)]), limits)).width, width);
  const table = Buffer.concat([
    Buffer.from('2c0000000001000100' + '87', 'hex'),
    Buffer.alloc(768, frame),
    Buffer.from('0200', 'hex'),
  ]);
  t.is((await probe(before(gif, many(100, table)), limits)).width, width);
});

test('whatever a file is cut to, the look at its blocks ends', async (t) => {
  const gif = before(await image(), many(50, Buffer.concat([frame, comment])));
  for (let length = 6; length < gif.length; length += 7) {
    const outcome = await probe(gif.subarray(0, length), limits).then(
      () => 'read',
      (error: unknown) => (error as { code: string }).code,
    );
    t.regex(outcome, /^(?:read|failed_to_read_image|invalid_dimensions)$/);
  }
});
