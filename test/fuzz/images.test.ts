import { crc32, deflateSync } from 'node:zlib';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import sharp from 'sharp';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { apiErrors } from '../../src/errors.ts';
import { insertPngChunk, pngChunk } from '../fixtures/bytes.ts';
import { engineOptions } from '../fixtures/engineSetup.ts';
import { heic, heicNames } from '../fixtures/heic.ts';
import { PRIMARIES, rgbProfile, type Tone } from '../fixtures/icc.ts';
import { random } from '../fixtures/random.ts';
import { type Service, startService } from '../fixtures/service.ts';

/**
 * Damaged image files and random options through complete requests: decoding, composition and encoding are the real
 * ones, only the matte is the fake engine's. `npm run fuzz` runs it longer, with the seed it prints.
 */
const seconds = Number(process.env['CUTOUT_FUZZ_SECONDS'] ?? Number.NaN);
const seed = Number(process.env['CUTOUT_FUZZ_SEED'] ?? 20_261_122);
const count = 250;

const test = anyTest as TestFn<{ engine: Engine }>;
test.before((t) => {
  t.context.engine = createEngine(loadAddon(), engineOptions());
});
test.after.always((t) => t.context.engine.close(0));

class Dice {
  readonly #next: () => number;
  constructor(of: number) {
    this.#next = random(of);
  }
  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }
  oneIn(n: number): boolean {
    return this.below(n) === 0;
  }
  of<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0];
  }
}

/** Files of every accepted format, as encoders write them. */
async function corpus(): Promise<readonly [Buffer, ...Buffer[]]> {
  const [width, height] = [96, 71];
  const noise = random(5);
  const data = Buffer.from(
    Array.from({ length: width * height * 4 }, (_, i) =>
      i % 4 === 3 ? (i % 1000 < 700 ? 255 : 90) : Math.floor(noise() * 40) + ((i >> 6) % 200),
    ),
  );
  const image = () => sharp(data, { raw: { width, height, channels: 4 } });
  const opaque = () => image().removeAlpha();
  return [
    await image().png().toBuffer(),
    ...(await Promise.all([
      image().png({ progressive: true }).toBuffer(),
      image().png({ palette: true, colours: 17 }).toBuffer(),
      image().toColourspace('rgb16').png().toBuffer(),
      opaque().toColourspace('b-w').png().withMetadata({ density: 300 }).toBuffer(),
      image().withIccProfile('p3').png().toBuffer(),
      opaque().jpeg().toBuffer(),
      opaque().jpeg({ progressive: true, chromaSubsampling: '4:4:4' }).toBuffer(),
      opaque().withMetadata({ orientation: 6 }).jpeg({ optimiseCoding: false }).toBuffer(),
      opaque().toColourspace('cmyk').jpeg().toBuffer(),
      opaque().toColourspace('b-w').jpeg().toBuffer(),
      image().webp().toBuffer(),
      image().webp({ lossless: true }).toBuffer(),
      opaque().withIccProfile('p3').webp({ quality: 20 }).toBuffer(),
      image().gif().toBuffer(),
      image().tiff().toBuffer(),
      image()
        .tiff({ tile: true, tileWidth: 32, tileHeight: 16, pyramid: true, compression: 'lzw' })
        .toBuffer(),
      opaque().toColourspace('rgb16').tiff({ compression: 'deflate', bigtiff: true }).toBuffer(),
      opaque().withMetadata({ orientation: 8 }).tiff({ compression: 'jpeg' }).toBuffer(),
      image().avif({ effort: 0 }).toBuffer(),
      opaque()
        .withIccProfile('p3')
        .withMetadata({ orientation: 3 })
        .avif({ effort: 0, lossless: true })
        .toBuffer(),
    ])),
    ...heicNames.map(heic),
  ];
}

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
function mendChunks(file: Buffer): void {
  for (let at = 8; at + 12 <= file.length; ) {
    const end = at + 8 + file.readUInt32BE(at);
    if (end + 4 > file.length) return;
    file.writeUInt32BE(crc32(file.subarray(at + 4, end)), end);
    at = end + 4;
  }
}

function damage(dice: Dice, whole: Buffer, other: Buffer): Buffer {
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

function fieldsOf(dice: Dice): Record<string, string> {
  const choices: Record<string, readonly [string, ...string[]]> = {
    size: ['auto', 'preview', 'full', '50MP', 'medium', '1000'],
    format: ['auto', 'png', 'jpg', 'webp', 'avif', 'zip'],
    lossless: ['true', 'false'],
    channels: ['rgba', 'alpha'],
    bg_color: ['81d4fa77', 'red', '#fff', 'nothing'],
    crop: ['true', 'false'],
    crop_margin: ['0', '10%', '30px', '10% 5% 0 3px', '-1'],
    scale: ['original', '10%', '50%', '100%'],
    position: ['original', 'center', '30% 90%'],
    roi: ['0% 0% 100% 100%', '10% 10% 60% 60%', '90% 90% 100% 100%', '3px 3px 40px 20px'],
    add_shadow: ['true'],
    shadow_type: ['drop', '3D', 'none'],
    shadow_opacity: ['0', '50', '100'],
    semitransparency: ['true', 'false'],
    type: ['auto', 'person', 'car', 'product'],
  };
  return Object.fromEntries(
    Object.entries(choices)
      .filter(() => dice.oneIn(3))
      .map(([name, values]) => [name, dice.of(values)]),
  );
}

const known = new Set(apiErrors.map(({ status, code }) => `${status} ${code}`));

/** Faults of an answer, and its outcome. */
async function faultOf(answer: Response): Promise<{ fault?: string; name: string }> {
  const body = Buffer.from(await answer.arrayBuffer());
  if (answer.status !== 200) {
    const text = body.toString();
    const { errors } = JSON.parse(text) as { errors?: { code?: string }[] };
    const name = `${answer.status} ${errors?.[0]?.code}`;
    return { name, ...((answer.status >= 500 || !known.has(name)) && { fault: text }) };
  }
  const type = answer.headers.get('content-type') ?? '';
  if (!type.startsWith('image/')) return { name: `200 ${type}` };
  const { width, height } = await sharp(body).metadata();
  const stated = `${answer.headers.get('x-width')}×${answer.headers.get('x-height')}`;
  await sharp(body).stats();
  return {
    name: `200 ${type}`,
    ...(stated !== `${width}×${height}` && { fault: `${stated} was ${width}×${height}` }),
  };
}

async function one(
  t: ExecutionContext,
  service: Service,
  files: readonly [Buffer, ...Buffer[]],
  own: number,
) {
  const dice = new Dice(own);
  const file = damage(dice, dice.of(files), dice.of(files));
  const form = new FormData();
  const fields = fieldsOf(dice);
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set('image_file', new Blob([new Uint8Array(file)]), 'image');
  if (dice.oneIn(5)) {
    const behind = damage(dice, dice.of(files), dice.of(files));
    form.set('bg_image_file', new Blob([new Uint8Array(behind)]), 'background');
  }
  const { fault, name } = await faultOf(await service.post(form)).catch((error: unknown) => ({
    fault: String(error),
    name: 'no answer',
  }));
  if (fault !== undefined) t.fail(`seed ${own}: ${name} ${fault} ${JSON.stringify(fields)}`);
  return name;
}

test('damaged images are answered as the contract says, whatever the options', async (t) => {
  t.timeout(((seconds || 0) + 110) * 1000);
  const service = await startService(t, {
    engine: t.context.engine,
    credits: 1e6,
    rate: 1e9,
    inputFormats: ['gif', 'tiff', 'avif', 'heic'],
  });
  const files = await corpus();
  const counts = new Map<string, number>();
  const end = performance.now() + seconds * 1000;
  const more = (done: number) =>
    Number.isNaN(seconds) ? done < count : done === 0 || performance.now() < end;
  let next = 0;
  const lane = async () => {
    while (more(next)) {
      const name = await one(t, service, files, seed + next++);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  };
  await Promise.all([lane(), lane(), lane()]);
  t.log(
    `${next} cases from seed ${seed} on: ${[...counts]
      .sort()
      .map(([name, n]) => `${name} ${n}`)
      .join(', ')}`,
  );
  t.is(await service.stores.ledger.openReservations(), 0);
  t.deepEqual(await service.stores.ledger.verify(), []);
  t.is(service.engine.running, 0);
});
