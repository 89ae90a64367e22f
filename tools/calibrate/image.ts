import sharp from 'sharp';

/** Side of the network's input. */
export const SIDE = 1024;

/** Network input of an image, of `side` pixels square: stretched, on white where it is transparent, (v - 128) / 256, planes. */
export async function inputOf(file: string, side = SIDE): Promise<Float32Array> {
  const pixels = await sharp(file)
    .rotate()
    .flatten({ background: '#fff' })
    .toColourspace('srgb')
    .removeAlpha()
    .resize(side, side, { fit: 'fill' })
    .raw()
    .toBuffer();
  const plane = side * side;
  const values = new Float32Array(3 * plane);
  for (let i = 0; i < plane; i++) {
    for (let c = 0; c < 3; c++) values[c * plane + i] = ((pixels[i * 3 + c] ?? 0) - 128) / 256;
  }
  return values;
}
