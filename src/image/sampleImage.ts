import sharp from 'sharp';

const width = 960;
const height = 640;

/** Half the width of the vase at a height from 0 (top) to 1 (foot), in pixels. */
const halfWidth = (v: number): number => 250 * (0.45 + 0.55 * Math.sin(Math.PI * (0.12 + 0.8 * v)));

/** Values from -1 to 1, the same in every run. */
function* noise(): Generator<number, never> {
  let state = 1;
  for (;;) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    yield (state >>> 16) / 32_768 - 1;
  }
}

type Pixel = readonly [number, number, number];

/** A light wall above a table with the shadow of the vase. */
function background(x: number, y: number): Pixel {
  const light = 236 - 26 * (y / height) - 10 * Math.cos((3 * x) / width);
  const shadow = 60 * Math.exp(-(((x - 520) / 260) ** 2) - ((y - 585) / 22) ** 2);
  const table = y > 500 ? 14 : 0;
  return [light - table - shadow, light - 6 - table - shadow, light - 16 - 2 * table - shadow];
}

/** The vase, lit from the left, with two bands; undefined beside it. */
function vase(x: number, y: number): Pixel | undefined {
  const v = (y - 60) / 520;
  if (v < 0 || v > 1) return undefined;
  const u = (x - 480) / halfWidth(v);
  if (Math.abs(u) > 1) return undefined;
  const shade = 0.35 + 0.65 * Math.sqrt(1 - u * u) * (0.75 - 0.35 * u);
  const glint = 70 * Math.exp(-(((u + 0.45) / 0.1) ** 2) - ((v - 0.35) / 0.25) ** 2);
  const band = Math.abs(v - 0.3) < 0.03 || Math.abs(v - 0.7) < 0.03;
  const colour: Pixel = band ? [120, 40, 48] : [28, 84, 104];
  const [r, g, b] = colour.map((value) => value * shade + 0.5 * glint);
  return [r ?? 0, g ?? 0, b ?? 0];
}

async function jpeg(pixel: (x: number, y: number) => Pixel): Promise<Buffer> {
  const data = Buffer.alloc(width * height * 3);
  const grain = noise();
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      for (const [channel, value] of pixel(x, y).entries())
        data[(y * width + x) * 3 + channel] = Math.max(0, Math.min(255, value + 3 * grain.next().value));
  return sharp(data, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 92 })
    .toBuffer();
}

/** A drawn image whose only subject, a dark vase on a light wall, covers a third of it; JPEG. */
export const sampleImage = (): Promise<Buffer> => jpeg((x, y) => vase(x, y) ?? background(x, y));

/** A background of the same size for it; JPEG. */
export const sampleBackground = (): Promise<Buffer> =>
  jpeg((x, y) => [200 - (120 * x) / width, 60 + (80 * y) / height, 160]);
