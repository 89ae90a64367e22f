import { type Command, InvalidArgumentError } from 'commander';
import type { Outcome } from './outcome.ts';

/** Options that several benches share; a bench names those it supports. */
export interface Shared {
  /** Number of measurements; a bench measures everything once per round. */
  readonly rounds: number;
  /** No new round or step begins after that many seconds. */
  readonly seconds: number;
  /** A running server and a key for it; without them the bench starts a server of its own. */
  readonly url?: string;
  readonly key?: string;
  /** Photographs to use instead of generated images: files or folders. */
  readonly images?: readonly string[];
}

export interface BenchCommand {
  /** As typed: `npm run bench -- NAME`. */
  readonly name: string;
  /** Heading of the report. */
  readonly title: string;
  /** One line for --help. */
  readonly summary: string;
  /** Default values of the supported shared options. `target`: --url and --key. */
  readonly shared?: Readonly<{ rounds?: number; seconds?: number; target?: true; images?: true }>;
  /** Adds its own options. */
  readonly options?: (command: Command) => Command;
  /** Why it cannot run in this checkout, in words; undefined if it can. */
  readonly unavailable?: () => string | undefined;
  /** Whether `all` runs it, and with which overrides. */
  readonly all?: Readonly<{ full?: object; quick?: object }>;
}

export interface Context {
  /** Reports progress in one short line, which is not part of the result. */
  readonly progress: (text: string) => void;
}

/** A module of bench/. Importing it has no side effects. */
export interface BenchModule {
  readonly command: BenchCommand;
  /** `options`: the supported shared ones and its own, as parsed by commander. */
  readonly run: (options: never, context: Context) => Promise<Outcome>;
}

const number = (text: string): number => {
  const value = Number(text);
  if (text.trim() === '' || !(value > 0) || value === Number.POSITIVE_INFINITY)
    throw new InvalidArgumentError('It must be a number above 0.');
  return value;
};

const whole = (text: string): number => {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number above 0.');
  return Number(text);
};

/** Parsers for option values; all throw commander's InvalidArgumentError. */
export const values = {
  number,
  whole,
  /** `1,12,50` */
  numbers: (text: string): readonly number[] => text.split(',').map(number),
  wholes: (text: string): readonly number[] => text.split(',').map(whole),
  /** `png,jpg` from the given words. */
  words:
    <T extends string>(...known: readonly T[]) =>
    (text: string): readonly T[] =>
      text.split(',').map((word) => {
        const found = known.find((candidate) => candidate === word.trim());
        if (found === undefined) throw new InvalidArgumentError(`Each must be one of ${known.join(', ')}.`);
        return found;
      }),
  address: (text: string): string => {
    if (!/^https?:$/.test(URL.parse(text)?.protocol ?? ''))
      throw new InvalidArgumentError('It must be an http or https address.');
    return text.replace(/\/+$/, '');
  },
};

/** Adds the supported shared options to a command. */
export function addShared(command: Command, { shared = {} }: BenchCommand): Command {
  const { rounds, seconds, target, images } = shared;
  if (rounds !== undefined)
    command.option('--rounds <n>', 'times everything is measured', values.whole, rounds);
  if (seconds !== undefined)
    command.option('--seconds <n>', 'time box; what has begun is finished', values.number, seconds);
  if (target) {
    command.option('--url <address>', 'measure this server instead of starting one', values.address);
    command.option('--key <key>', 'API key for it (default: CUTOUT_API_KEY)');
  }
  if (images)
    command.option(
      '--images <paths...>',
      'photographs to measure with: files or folders (default: drawn images)',
    );
  return command;
}
