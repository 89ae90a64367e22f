import sharp from 'sharp';

/** Side of the network's input. */
export const SIDE = 1024;
const PLANE = SIDE * SIDE;

/** Network input of a picture: stretched, on white where it is transparent, (v - 128) / 256, planes. */
export async function inputOf(file: string): Promise<Float32Array> {
  const pixels = await sharp(file)
    .rotate()
    .flatten({ background: '#fff' })
    .toColourspace('srgb')
    .removeAlpha()
    .resize(SIDE, SIDE, { fit: 'fill' })
    .raw()
    .toBuffer();
  const values = new Float32Array(3 * PLANE);
  for (let i = 0; i < PLANE; i++) {
    for (let c = 0; c < 3; c++) values[c * PLANE + i] = ((pixels[i * 3 + c] ?? 0) - 128) / 256;
  }
  return values;
}
