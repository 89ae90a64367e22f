import type { Bars, Stacked } from '../outcome.ts';
import { sum } from '../stats.ts';
import { withUnit } from '../table.ts';
import { at, colour, drawing, escaped, legend, roundUp, text, ticks } from './svg.ts';

const WIDTH = 960;
const ROW = 26;
const BAR = 16;

interface Row {
  readonly label: string;
  /** Segments from left to right; `hint` is shown on pointing at one. */
  readonly segments: readonly { readonly value: number; readonly colour: string; readonly hint: string }[];
}

/** Room for the labels: about 7 units a letter. */
const labelRoom = (labels: readonly string[]): number =>
  Math.min(320, 16 + 7 * Math.max(0, ...labels.map((label) => label.length)));

function rowsOf(title: string, unit: string, rows: readonly Row[]): string {
  const left = labelRoom(rows.map(({ label }) => label));
  const right = 90;
  const totals = rows.map(({ segments }) => sum(segments.map(({ value }) => value)));
  const end = roundUp(Math.max(...totals, 1e-9));
  const scale = (value: number) => ((WIDTH - left - right) * value) / end;
  const bottom = rows.length * ROW + 4;
  const grid = ticks(0, end)
    .map((tick) => {
      const x = left + scale(tick);
      return `<line x1="${at(x)}" x2="${at(x)}" y1="0" y2="${bottom}" class="grid"/>${text(x, bottom + 16, withUnit(tick, unit), { anchor: 'middle', name: 'tick' })}`;
    })
    .join('');
  const drawn = rows
    .map(({ label, segments }, row) => {
      const top = row * ROW + (ROW - BAR) / 2;
      let x = left;
      const shapes = segments
        .filter(({ value }) => value > 0)
        .map((segment) => {
          const width = scale(segment.value);
          const shape = `<rect x="${at(x)}" y="${at(top)}" width="${at(Math.max(width, 0.5))}" height="${BAR}" fill="${segment.colour}"><title>${escaped(segment.hint)}</title></rect>`;
          x += width;
          return shape;
        });
      const base = top + BAR - 4;
      return `${text(left - 8, base, label, { anchor: 'end' })}${shapes.join('')}${text(x + 6, base, withUnit(totals[row] ?? 0, unit), { name: 'value' })}`;
    })
    .join('');
  return drawing(WIDTH, bottom + 24, title, grid + drawn);
}

export function barsHtml({ title, unit, bars }: Bars): string {
  const series = [...new Set(bars.map((bar) => bar.series ?? ''))];
  const rows = bars.map(({ label, value, series: name = '' }) => ({
    label,
    segments: [
      {
        value,
        colour: colour(series.indexOf(name)),
        hint: `${name && `${name}, `}${label}: ${withUnit(value, unit)}`,
      },
    ],
  }));
  return legend(series.map((name, i) => ({ name, colour: colour(i) }))) + rowsOf(title, unit, rows);
}

export function stackedHtml({ title, unit, parts, omit = [], rows }: Stacked): string {
  const shown = parts
    .map((name, i) => ({ name, i, colour: colour(i) }))
    .filter(({ name }) => !omit.includes(name));
  const drawn = rows.map(({ label, values }) => ({
    label,
    segments: shown.map(({ name, i, ...rest }) => ({
      ...rest,
      value: values[i] ?? 0,
      hint: `${label}, ${name}: ${withUnit(values[i] ?? 0, unit)}`,
    })),
  }));
  return legend(shown) + rowsOf(title, unit, drawn);
}
