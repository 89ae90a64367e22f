import sharp from 'sharp';
import { heic, heicNames } from '../fixtures/heic.ts';
import { random } from '../fixtures/random.ts';

/** Files of every accepted format, as encoders write them. */
export async function corpus(): Promise<readonly [Buffer, ...Buffer[]]> {
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
