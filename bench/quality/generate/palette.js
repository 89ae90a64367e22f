import { dice } from './random.js';

/** @param {number} hue 0..1 @returns {[number, number, number]} 0..1 */
export function hsl(hue, saturation, lightness) {
  const reach = saturation * Math.min(lightness, 1 - lightness);
  const channel = (n) => {
    const k = (n + hue * 12) % 12;
    return lightness - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1));
  };
  return [channel(0), channel(8), channel(4)];
}

/**
 * Colours of an image: two for the subject, two for what is behind it. `like` gives both nearly the same ones, so
 * that colour says little about where the subject ends.
 * @returns {{subject: [number[], number[]], ground: [number[], number[]], accent: number[]}}
 */
export function palette(seed, like) {
  const d = dice(seed);
  const hue = d.next();
  const dark = d.next() < 0.5;
  const subject = [
    hsl(hue, d.between(0.25, 0.8), dark ? d.between(0.1, 0.22) : d.between(0.45, 0.6)),
    hsl((hue + d.between(-0.06, 0.06) + 1) % 1, d.between(0.3, 0.8), dark ? 0.4 : 0.82),
  ];
  const accent = hsl((hue + 0.5 + d.between(-0.1, 0.1)) % 1, 0.7, 0.5);
  if (like) {
    const near = (colour) =>
      colour.map((value) => Math.min(0.95, Math.max(0.04, value + d.between(-0.05, 0.05))));
    return { subject, ground: [near(subject[0]), near(subject[1])], accent };
  }
  const other = (hue + d.between(0.2, 0.8)) % 1;
  const ground = [
    hsl(other, d.between(0.1, 0.6), dark ? d.between(0.45, 0.6) : d.between(0.12, 0.3)),
    hsl((other + d.between(-0.1, 0.1) + 1) % 1, d.between(0.1, 0.6), dark ? 0.88 : 0.5),
  ];
  return { subject, ground, accent };
}
