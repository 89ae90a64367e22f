import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { enlarge, reduce } from './planes.js';

/**
 * The product's own steps by themselves, through the test addon (`npm run setup -- --tests`): the only part of this
 * bench that looks behind the public face. Its functions are described in test/native/kernelsAddon.ts.
 * @param {string} file cutout_test.node
 * @returns what can be compared alone, or undefined where the addon was not built
 */
export function openKernels(file, threads) {
  if (!existsSync(file)) return undefined;
  const addon = createRequire(import.meta.url)(file);
  const whole = ({ width, height }) => ({ left: 0, top: 0, width, height });
  const guideOf = (rgb, size, small) => {
    const planes = new Float32Array(3 * small.width * small.height);
    reduce(rgb, { ...size, channels: 3 }, small).forEach((plane, c) => {
      // As the network sees it: 8 bits.
      planes.set(
        plane.map((value) => Math.round(value * 255) / 255),
        c * plane.length,
      );
    });
    return { planes, ...small, scale: 1, offset: 0 };
  };
  return {
    /**
     * A network's alpha brought to the image's size, with colours, as the product does it.
     * @param {{rgb: Uint8Array, width: number, height: number}} image
     * @param {{p: Float32Array, width: number, height: number}} network
     */
    refine({ rgb, width, height }, { p, width: across, height: down }) {
      const small = { width: across, height: down };
      const data = withAlpha(rgb);
      const image = { data, width, height, stride: width * 4 };
      const roi = whole(image);
      addon.refine(image, guideOf(rgb, { width, height }, small), p, roi, 'clear', threads);
      return split(data);
    },
    /**
     * Colours alone: the product's estimate at a quarter of the size from the true alpha, enlarged, and of the colours
     * that explain each pixel the nearest to it. Undefined where the addon has no such kernel.
     */
    colours: addon.estimateColours
      ? ({ rgb, alpha, width, height }) => {
          const size = { width, height };
          const small = { width: Math.round(width / 4), height: Math.round(height / 4) };
          const [plane] = reduce(alpha, { ...size, channels: 1 }, small);
          const found = addon.estimateColours(guideOf(rgb, size, small), plane, threads);
          const out = new Uint8Array(rgb.length);
          for (let c = 0; c < 3; c++) {
            const part = (k) =>
              enlarge(found.subarray(k * plane.length, (k + 1) * plane.length), small, size);
            const [front, behind] = [part(c), part(c + 3)];
            for (let i = 0; i < alpha.length; i++) {
              const a = alpha[i] / 255;
              const left = rgb[i * 3 + c] - a * front[i] - (1 - a) * behind[i];
              const value = front[i] + (a * left) / (a * a + (1 - a) * (1 - a));
              out[i * 3 + c] = Math.min(255, Math.max(0, Math.round(value)));
            }
          }
          return out;
        }
      : undefined,
  };
}

/** Opaque RGBA of RGB. */
export function withAlpha(rgb) {
  const data = new Uint8Array((rgb.length / 3) * 4);
  for (let i = 0, at = 0; i < rgb.length; i += 3, at += 4) {
    data[at] = rgb[i];
    data[at + 1] = rgb[i + 1];
    data[at + 2] = rgb[i + 2];
    data[at + 3] = 255;
  }
  return data;
}

/** Matte and colours of RGBA. */
export function split(data) {
  const [matte, rgb] = [new Uint8Array(data.length / 4), new Uint8Array((data.length / 4) * 3)];
  for (let i = 0, at = 0; at < data.length; i++, at += 4) {
    rgb[i * 3] = data[at];
    rgb[i * 3 + 1] = data[at + 1];
    rgb[i * 3 + 2] = data[at + 2];
    matte[i] = data[at + 3];
  }
  return { matte, rgb };
}
