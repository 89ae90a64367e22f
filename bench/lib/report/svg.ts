/** Text that stands in HTML or SVG. */
export const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** At most two digits after the point: plots need no more, and the page stays small. */
export const at = (value: number): string => String(Math.round(value * 100) / 100);

/** Round steps from `from` so that about `count` of them reach `to`. */
export function ticks(from: number, to: number, count = 5): readonly number[] {
  if (!(to > from)) return [from];
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(from / step - 1e-9);
  const last = Math.floor(to / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** The first round step at or above `to`: where an axis ends. */
export function roundUp(to: number): number {
  const steps = ticks(0, to);
  const [, step = 1] = steps;
  const last = steps.at(-1) ?? 0;
  return last >= to ? last : Number((last + step).toPrecision(12));
}

/** Powers of ten and their 2- and 5-folds within the limits. */
export function logTicks(from: number, to: number): readonly number[] {
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power++)
    for (const factor of [1, 2, 5]) {
      const value = Number((factor * 10 ** power).toPrecision(3));
      if (value >= from && value <= to) found.push(value);
    }
  return found;
}

export const text = (
  x: number,
  y: number,
  content: string,
  { anchor = 'start', name = '' }: { anchor?: 'start' | 'middle' | 'end'; name?: string } = {},
): string =>
  `<text x="${at(x)}" y="${at(y)}" text-anchor="${anchor}"${name && ` class="${name}"`}>${escaped(content)}</text>`;

/** A drawing that fills the width of its card. `label` is what a screen reader says. */
export const drawing = (width: number, height: number, label: string, content: string): string =>
  `<svg viewBox="0 0 ${width} ${at(height)}" role="img" aria-label="${escaped(label)}">${content}</svg>`;

/** Colours of series, in order; the page's style gives them for light and dark. */
export const colour = (index: number): string => `var(--c${(index % 8) + 1})`;

/** Names of series beside their colours; nothing for a single one. */
export const legend = (series: readonly { readonly name: string; readonly colour: string }[]): string =>
  series.length < 2
    ? ''
    : `<ul class="legend">${series
        .map((one) => `<li><i style="background:${one.colour}"></i>${escaped(one.name)}</li>`)
        .join('')}</ul>`;
