import sharp from 'sharp';
import type { Manifest } from '../../src/models/manifest.ts';

/** Network input of an image: resized, on white where it is transparent, (v - mean) / std, as planes. */
export async function inputOf(
  file: string,
  { width, height, mean, std }: Manifest['input'],
): Promise<Float32Array> {
  const pixels = await sharp(file)
    .rotate()
    .flatten({ background: '#fff' })
    .toColourspace('srgb')
    .removeAlpha()
    .resize(width, height, { fit: 'fill' })
    .raw()
    .toBuffer();
  const plane = width * height;
  const values = new Float32Array(3 * plane);
  for (let c = 0; c < 3; c++) {
    const [zero = 0, step = 1] = [mean[c], std[c]];
    for (let i = 0; i < plane; i++) values[c * plane + i] = ((pixels[i * 3 + c] ?? 0) - zero) / step;
  }
  return values;
}
