import type { Cell, Table } from './outcome.ts';

/** A number with three significant digits, or as many as its integer part has. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  return size >= 1 ? value.toFixed(2) : value.toFixed(3);
}

export const withUnit = (value: number, unit: string): string =>
  unit === '×' ? `${value.toFixed(3)}×` : `${digits(value)} ${unit}`.trim();

export const cellText = (cell: Cell | undefined): string =>
  cell === null || cell === undefined ? '' : typeof cell === 'number' ? digits(cell) : cell;

/** A column is right-aligned if all its cells are numbers or empty. */
export const isNumeric = ({ rows }: Table, column: number): boolean =>
  rows.every((row) => typeof row[column] !== 'string' || /^[–-]?$/.test(row[column]));

/** For a terminal. */
export function tableText(table: Table): string {
  const { title, columns, rows, note } = table;
  const lines = [[...columns], ...rows.map((row) => columns.map((_, at) => cellText(row[at])))];
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => [...(line[at] ?? '')].length)));
  const pad = (text: string, at: number): string => {
    const space = ' '.repeat((widths[at] ?? 0) - [...text].length);
    return isNumeric(table, at) ? space + text : text + space;
  };
  const body = lines.map((line) => `  ${line.map(pad).join('   ')}`.trimEnd());
  const rule = `  ${widths.map((width) => '─'.repeat(width)).join('───')}`;
  return `${[title, body[0], rule, ...body.slice(1), ...(note ? [`  ${note}`] : [])].join('\n')}\n`;
}
