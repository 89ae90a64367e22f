import type { Axis, Lines } from '../outcome.ts';
import { digits } from '../table.ts';
import { at, colour, drawing, escaped, legend, logTicks, roundUp, text, ticks } from './svg.ts';

const WIDTH = 960;
const HEIGHT = 360;
const LEFT = 64;
const RIGHT = 24;
const TOP = 16;
const BOTTOM = 48;

interface Scale {
  /** 0 at the axis' start, 1 at its end. */
  readonly place: (value: number) => number;
  readonly ticks: readonly { readonly value: number; readonly label: string }[];
}

/** How far a percentile lies towards 100, each nine as wide as the one before. */
const nines = (percentile: number): number => -Math.log10(1 - Math.min(percentile, 99.999) / 100);

function scaleOf({ scale = 'linear', from }: Axis, values: readonly number[]): Scale {
  const highest = Math.max(...values);
  if (scale === 'percentile') {
    const end = Math.max(nines(highest), 1);
    return {
      place: (value) => nines(value) / end,
      ticks: [0, 50, 75, 90, 95, 99, 99.9, 99.99]
        .filter((tick) => nines(tick) <= end + 1e-9)
        .map((value) => ({ value, label: value === 0 ? '0' : `p${value}` })),
    };
  }
  const label = (value: number) => ({ value, label: digits(value) });
  const lowest = Math.min(...values);
  if (scale === 'log' && lowest > 0 && highest > lowest) {
    const [low, high] = [lowest / 1.15, highest * 1.15];
    return {
      place: (value) => Math.log(value / low) / Math.log(high / low),
      ticks: logTicks(low, high).map(label),
    };
  }
  const start = from ?? 0;
  const end = start + roundUp(Math.max(highest - start, 1e-9));
  return {
    place: (value) => (value - start) / (end - start),
    ticks: ticks(start, end, 6).map(label),
  };
}

export function linesHtml({ title, x, y, series, marks = [] }: Lines): string {
  const points = series.flatMap((one) => one.points);
  if (points.length === 0) return '<p>No points.</p>';
  const marked = (axis: 'x' | 'y') => marks.filter((mark) => mark.axis === axis).map((mark) => mark.at);
  const xs = scaleOf(x, [...points.map(([value]) => value), ...marked('x')]);
  const ys = scaleOf(y, [...points.map(([, value]) => value), ...marked('y')]);
  const px = (value: number) => LEFT + (WIDTH - LEFT - RIGHT) * xs.place(value);
  const py = (value: number) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ys.place(value);
  const foot = HEIGHT - BOTTOM;
  const grid = [
    ...xs.ticks.map(
      ({ value, label }) =>
        `<line x1="${at(px(value))}" x2="${at(px(value))}" y1="${TOP}" y2="${foot}" class="grid"/>${text(px(value), foot + 18, label, { anchor: 'middle', name: 'tick' })}`,
    ),
    ...ys.ticks.map(
      ({ value, label }) =>
        `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at(py(value))}" y2="${at(py(value))}" class="grid"/>${text(LEFT - 8, py(value) + 4, label, { anchor: 'end', name: 'tick' })}`,
    ),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x.label, { anchor: 'middle', name: 'axis' }),
    `<g transform="rotate(-90 14 ${(TOP + foot) / 2})">${text(14, (TOP + foot) / 2, y.label, { anchor: 'middle', name: 'axis' })}</g>`,
  ];
  const crossing = marks.map((mark) =>
    mark.axis === 'x'
      ? `<line x1="${at(px(mark.at))}" x2="${at(px(mark.at))}" y1="${TOP}" y2="${foot}" class="mark"/>${text(px(mark.at) - 6, TOP + 12, mark.label, { anchor: 'end', name: 'marked' })}`
      : `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at(py(mark.at))}" y2="${at(py(mark.at))}" class="mark"/>${text(LEFT + 8, py(mark.at) - 6, mark.label, { name: 'marked' })}`,
  );
  const drawn = series.map(({ name, points: own, dots = false }, i) => {
    const line = own.map(([a, b]) => `${at(px(a))},${at(py(b))}`).join(' ');
    const shown = own.map(
      ([a, b]) =>
        `<circle cx="${at(px(a))}" cy="${at(py(b))}" r="3.5" fill="${colour(i)}"><title>${escaped(`${name}: ${digits(a)}, ${digits(b)}`)}</title></circle>`,
    );
    return `<polyline points="${line}" fill="none" stroke="${colour(i)}" stroke-width="2" stroke-linejoin="round"/>${dots ? shown.join('') : ''}`;
  });
  return (
    legend(series.map(({ name }, i) => ({ name, colour: colour(i) }))) +
    drawing(WIDTH, HEIGHT, title, grid.join('') + crossing.join('') + drawn.join(''))
  );
}
