import fc from 'fast-check';
import type { Guide } from './kernelsAddon.ts';
import { random } from './kernelsImages.ts';

/** Guides of any colours, with alphas from entirely certain to pure noise, including NaN and values out of range. */
export const anyGuide = fc
  .record({
    width: fc.integer({ min: 1, max: 75 }),
    height: fc.integer({ min: 1, max: 45 }),
    kind: fc.constantFrom('zero', 'one', 'noise', 'blob', 'step', 'soft', 'wild'),
    flat: fc.boolean(),
    seed: fc.nat(),
  })
  .map(({ width, height, kind, flat, seed }) => {
    const next = random(seed);
    const [cx, cy, radius] = [next() * width, next() * height, (0.2 + next()) * width * 0.5];
    const value = (x: number, y: number): number => {
      const inside = radius - Math.hypot(x - cx, y - cy);
      if (kind === 'zero') return next() * 0.001;
      if (kind === 'one') return 1 - next() * 0.001;
      if (kind === 'noise') return next();
      if (kind === 'step') return inside > 0 ? 1 : 0;
      if (kind === 'soft') return Math.min(1, Math.max(0, inside / 30 + 0.5));
      if (kind === 'wild')
        return [Number.NaN, -3, 7, Number.POSITIVE_INFINITY, next()][Math.floor(next() * 5)] ?? 0;
      return Math.min(1, Math.max(0, inside / 3 + 0.5));
    };
    const p = Float32Array.from({ length: width * height }, (_, i) =>
      value(i % width, Math.floor(i / width)),
    );
    const planes = Float32Array.from({ length: 3 * width * height }, () => (flat ? 0.25 : next() * 4 - 2));
    const guide: Guide = {
      planes,
      width,
      height,
      scale: 0.25,
      offset: 0.5,
      ...(next() < 0.5 && {
        sampleConfidence: Float32Array.from(p, () => next()),
        sampledAlpha: Float32Array.from(p, () => next()),
      }),
    };
    return { guide, p };
  });
