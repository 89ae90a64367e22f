import { composeImage, cutoutsIn, imagesIn } from './cutouts.js';
import { drawImage, imageList, KINDS, sizeOf } from './index.js';

/**
 * Images with exact truth, one at a time: drawn, or composed from cut-outs and photos.
 * @param {{count?: number, megapixels?: number, seed?: number, kinds?: string[], cutouts?: string, photos?: string}} options
 * @returns {AsyncGenerator<import('./index.js').Image>}
 */
export async function* generated({ count, megapixels = 4, seed = 1, kinds = KINDS, cutouts, photos }) {
  const size = sizeOf(megapixels);
  if (cutouts) {
    if (!photos) throw new RangeError('--cutouts needs --photos DIR to lay them over');
    const fronts = await cutoutsIn(cutouts);
    const behind = (await imagesIn(photos)).filter((file) => !fronts.includes(file));
    if (fronts.length === 0) throw new RangeError(`no image with transparent parts in ${cutouts}`);
    if (behind.length === 0) throw new RangeError(`no photo in ${photos}`);
    const total = count ?? fronts.length;
    for (let i = 0; i < total; i++) {
      // Spread over the whole folder, whatever the count.
      const cutout = fronts[Math.floor((i * fronts.length) / total) % fronts.length];
      yield composeImage({ cutout, photo: behind[(i * 7 + seed) % behind.length], ...size, seed });
    }
    return;
  }
  for (const { kind, seed: own } of imageList(count ?? kinds.length, { kinds, seed })) {
    yield drawImage({ kind, ...size, seed: own });
  }
}
