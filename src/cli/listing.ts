import { type Command, InvalidArgumentError, Option } from 'commander';
import { csv, type Row } from '../billing/present.ts';
import { table } from './output.ts';

/** How a list is printed. */
export type ListFormat = 'table' | 'csv' | 'json';

export const formatOption = () =>
  new Option('--format <form>', 'output format').choices(['table', 'csv', 'json']).default('table');

/** A UTC day as Unix milliseconds. */
function dayArgument(text: string): number {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw new InvalidArgumentError('Expected a UTC day, e.g. 2026-11-21.');
  return at;
}

/** Adds the options of a period. */
export const withPeriod = (command: Command): Command =>
  command
    .option('--from <day>', 'first UTC day', dayArgument)
    .option('--to <day>', 'UTC day at which the period ends, exclusive', dayArgument);

/** Columns are the keys of the first row; a table without rows says so. */
export function render(rows: readonly Row[], format: ListFormat): string {
  if (format === 'json') return `${JSON.stringify(rows, null, 2)}\n`;
  const [first] = rows;
  if (!first) return format === 'table' ? '(none)\n' : '';
  const columns = Object.keys(first);
  const cells = rows.map((row) => columns.map((column) => String(row[column] ?? '')));
  return format === 'csv'
    ? csv([columns, ...cells])
    : table([columns.map((name) => name.toUpperCase()), ...cells]);
}

/** Opens something for one command, and closes it when the work has ended. */
export async function using<Opened extends { close(): Promise<void> }, T>(
  opening: Promise<Opened>,
  work: (opened: Opened) => T | Promise<T>,
): Promise<T> {
  const opened = await opening;
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}
