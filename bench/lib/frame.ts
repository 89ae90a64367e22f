import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { BenchModule, Context } from './command.ts';
import { machine, versions } from './machine.ts';
import type { Report } from './outcome.ts';
import { reportText } from './print.ts';
import { page } from './report/page.ts';

/** Runs a bench and adds the data that every report has. */
export async function measure(
  { command, run }: BenchModule,
  options: object,
  context: Context,
): Promise<Report> {
  const reason = command.unavailable?.();
  if (reason !== undefined) throw new Error(`${command.name}: ${reason}`);
  const before = { machine: machine(), versions: versions(), started: new Date().toISOString() };
  const begin = performance.now();
  const outcome = await run(options as never, context);
  return {
    format: 'cutout-bench-1',
    bench: command.name,
    title: command.title,
    ...before,
    seconds: (performance.now() - begin) / 1000,
    ...outcome,
  };
}

/** A stream for text; `isTTY` if it is a terminal. */
export interface Sink {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

export interface Output {
  /** Receives the report. */
  readonly out: Sink;
  /** Receives progress. */
  readonly err: Sink;
}

export interface Destinations {
  /** A file, or `-` for standard output. */
  readonly json?: string;
  readonly html?: string;
}

async function save(file: string, text: string): Promise<void> {
  await mkdir(path.dirname(path.resolve(file)), { recursive: true });
  await writeFile(file, text);
}

/** Prints a report and writes the files asked for. */
export async function deliver(report: Report, { json, html }: Destinations, out: Sink): Promise<void> {
  const text = `${JSON.stringify(report, null, 1)}\n`;
  if (html !== undefined) await save(html, page([report]));
  if (json !== undefined && json !== '-') await save(json, text);
  out.write(json === '-' ? text : reportText(report));
}

/** Lines on a terminal that are overwritten by the next one, or consecutive lines elsewhere. */
export function progressOn(sink: Sink, name: string): Context & { readonly done: () => void } {
  const clear = sink.isTTY ? '\r\u001b[K' : '';
  return {
    progress: (text) => {
      sink.write(`${clear}${name}: ${text}${sink.isTTY ? '' : '\n'}`);
    },
    done: () => {
      if (clear) sink.write(clear);
    },
  };
}
