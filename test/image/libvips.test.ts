import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import sharp from 'sharp';
import { decode } from '../../src/image/decode.ts';
import { configureLibvips } from '../../src/image/libvips.ts';
import { probe } from '../../src/image/probe.ts';
import { contractLimits, type InputFormat } from '../../src/image/types.ts';

// The settings are process-wide, so these tests are serial.
const image = () => sharp({ create: { width: 12, height: 9, channels: 3, background: '#4080c0' } });
const opens = async (bytes: Buffer) =>
  await sharp(bytes)
    .metadata()
    .then(
      () => true,
      () => false,
    );

test.serial('only the loaders of the given formats remain', async (t) => {
  configureLibvips({ formats: contractLimits.formats });
  for (const bytes of [
    await image().jpeg().toBuffer(),
    await image().png().toBuffer(),
    await image().webp().toBuffer(),
  ]) {
    t.true(await opens(bytes));
  }
  for (const bytes of [
    await image().gif().toBuffer(),
    await image().tiff().toBuffer(),
    await image().avif().toBuffer(),
    Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
    Buffer.from('P6 1 1 255\nabc'),
  ]) {
    t.false(await opens(bytes));
  }
});

test.serial('files cannot be opened by name', async (t) => {
  configureLibvips({ formats: contractLimits.formats });
  await t.throwsAsync(sharp(new URL(import.meta.url).pathname.replace('.js', '.png')).metadata());
});

test.serial('formats that the operator enables are decoded', async (t) => {
  const formats: InputFormat[] = ['jpeg', 'png', 'webp', 'avif', 'tiff', 'gif'];
  configureLibvips({ formats });
  for (const [format, bytes] of [
    ['gif', await image().gif().toBuffer()],
    ['tiff', await image().tiff().toBuffer()],
    ['avif', await image().avif({ lossless: true }).toBuffer()],
  ] as const) {
    const header = await probe(bytes, { ...contractLimits, formats });
    t.is(header.format, format);
    const { data, width, height } = await decode(bytes, header, header);
    t.is(`${width}x${height}`, '12x9');
    const [r = 0, g = 0, b = 0, a] = data;
    t.true(
      Math.abs(r - 0x40) < 6 && Math.abs(g - 0x80) < 6 && Math.abs(b - 0xc0) < 6 && a === 255,
      `${r} ${g} ${b} ${a}`,
    );
  }
  t.false(await opens(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')));
});

test.serial('images are read while the same formats are configured again', async (t) => {
  configureLibvips({ formats: contractLimits.formats });
  const bytes = await image().webp().toBuffer();
  let refused = 0;
  let reading = true;
  const readMany = async () => {
    for (let i = 0; i < 300; i += 1) if (!(await opens(bytes))) refused += 1;
  };
  const configureMany = async () => {
    for (; reading; await turn()) configureLibvips({ formats: contractLimits.formats });
  };
  const configuring = configureMany();
  await Promise.all(Array.from({ length: 8 }, readMany));
  reading = false;
  await configuring;
  t.is(refused, 0);
});

test.serial('a format that is no longer enabled is blocked again', async (t) => {
  configureLibvips({ formats: ['png', 'gif'] });
  t.true(await opens(await image().gif().toBuffer()));
  configureLibvips({ formats: ['png'] });
  t.false(await opens(await image().gif().toBuffer()));
});
