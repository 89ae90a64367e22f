import { createRequire } from 'node:module';
import type { SingleBar } from 'cli-progress';
import type { ConfigLine } from '../config/readConfig.ts';
import { EngineError } from '../engine/types.ts';
import { UserError } from '../errors.ts';
import { ModelError } from '../models/error.ts';

/** Errors whose message is a sentence for the user; all others are bugs, whose stack is printed. */
export const isForPeople = (error: unknown): error is Error =>
  error instanceof UserError ||
  error instanceof ModelError ||
  (error instanceof EngineError && error.code !== 'ENGINE_INTERNAL');

/** Aligned columns, two spaces apart. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}

/** Bytes in megabytes (10⁶), below 10 MB with a tenth. */
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;

/** What a terminal obeys instead of showing it: control characters but for tab and ends of lines, and changes of direction. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const obeyed = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/** The text with such characters written as in JSON: names come from files, accounts and identity providers. */
export const printable = (text: string): string =>
  text.replaceAll(obeyed, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

type Write = NodeJS.WriteStream['write'];

/** The streams that `printSafely` has changed, with their own `write`. */
const own = new WeakMap<object, Write>();

/** Makes texts that are written to this stream from now on printable; bytes stay as they are. */
export function printSafely(stream: NodeJS.WriteStream): void {
  const write = stream.write.bind(stream) as (chunk: string | Uint8Array, ...rest: unknown[]) => boolean;
  own.set(stream, stream.write.bind(stream));
  stream.write = ((chunk: string | Uint8Array, ...rest: unknown[]) =>
    write(typeof chunk === 'string' ? printable(chunk) : chunk, ...rest)) as Write;
}

/** The stream as it was, for what moves the cursor of a terminal. */
export function unfiltered<Stream extends NodeJS.WritableStream>(stream: Stream): Stream {
  const write = own.get(stream);
  return write ? (Object.create(stream, { write: { value: write } }) as Stream) : stream;
}

/** A bar that is removed at its end. Its library is loaded only if one is drawn, because every start of a server imports this file. */
export function newProgressBar(stream: NodeJS.WritableStream, format: string): SingleBar {
  const bars = createRequire(import.meta.url)('cli-progress') as typeof import('cli-progress');
  const options = { stream: unfiltered(stream), format, hideCursor: true, clearOnComplete: true };
  return new bars.SingleBar(options, bars.Presets.shades_classic);
}

/** `cutout config`: every setting with its value and origin; a `!` marks those that a fault names. */
export function showConfig(lines: readonly ConfigLine[], json: boolean, out: NodeJS.WritableStream): void {
  if (json) {
    out.write(`${JSON.stringify(lines, undefined, 2)}\n`);
    return;
  }
  const anyWrong = lines.some(({ wrong }) => wrong);
  const rows = lines.map(({ variable, value, source, help, wrong }) => [
    anyWrong ? `${wrong ? '!' : ' '} ${variable}` : variable,
    value === null || (Array.isArray(value) && value.length === 0) ? '-' : String(value),
    source,
    help,
  ]);
  out.write(table(rows));
}
