import { z } from 'zod';
import { type InvalidOption, invalidOption } from '../errors.ts';
import type { OptionParser } from '../geometry/optionParser.ts';
import { type BySubject, parseBySubject } from '../geometry/shadow.ts';
import { type Form, maxTextLength } from './form.ts';
import type { RouteField } from './routeFields.ts';

/** The declaration of one option: its parser, meaning, error and documentation. */
export interface Option<T> extends RouteField {
  /** Throws the option's own error; returns the default if the option is absent. */
  readonly read: (name: string, form: Form) => T;
  /** Takes the text as sent, trimmed and never empty. Its JSON Schema describes that text. */
  readonly schema: z.ZodType<T, string>;
  readonly invalid: InvalidOption;
  /** The grammar in words: "Expected …". */
  readonly expected: string;
  readonly description: string;
  /** Whether the field also exists per type of subject: `name[person]`. */
  readonly perSubject: boolean;
}

type Wording = Pick<Option<unknown>, 'invalid' | 'description' | 'number' | 'list'>;

type OptionValues<F> = { readonly [Name in keyof F]: F[Name] extends Option<infer T> ? T : never };

/** `a, b or c` */
const inWords = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

/** Text that `parse` understands; `meta` is added to its JSON Schema. */
const readable = <T>(parse: (text: string) => T | undefined, meta: Record<string, unknown>) =>
  z
    .string()
    .meta(meta)
    .transform((text, context): T => {
      const value = parse(text);
      if (value !== undefined) return value;
      context.issues.push({ code: 'custom', message: 'not of this grammar', input: text });
      return z.NEVER;
    });

function option<T>(
  schema: z.ZodType<T, string>,
  { fallback, expected, ...wording }: Wording & { fallback: T; expected: string },
): Option<T> {
  return {
    ...wording,
    schema,
    expected,
    perSubject: false,
    read(name, { text }) {
      const given = text.get(name);
      if (given === undefined) return fallback;
      const parsed = given.length <= maxTextLength ? schema.safeParse(given) : undefined;
      if (parsed?.success) return parsed.data;
      throw invalidOption(wording.invalid, expected, given);
    },
  };
}

/**
 * One of several words, case-insensitive. `words` maps every accepted spelling, aliases included, to its
 * value; `unset` is the spelling that an absent field stands for.
 */
export function choice<T extends string | boolean>(
  words: Readonly<Record<string, T>>,
  { unset, ...wording }: Wording & { unset: string },
): Option<T> {
  const spellings = Object.keys(words);
  const meaning = new Map(Object.entries(words).map(([word, value]) => [word.toLowerCase(), value]));
  const fallback = meaning.get(unset.toLowerCase());
  if (fallback === undefined) throw new TypeError(`${unset} is not one of ${spellings.join(', ')}`);
  const aliases = Object.entries(words).filter(
    ([word, value]) => word !== String(value) && spellings.includes(String(value)),
  );
  const schema = readable((text) => meaning.get(text.toLowerCase()), {
    enum: spellings,
    default: unset,
    ...(aliases.length > 0 && { 'x-aliases': Object.fromEntries(aliases) }),
  });
  return option(schema, { ...wording, fallback, expected: inWords(spellings) });
}

/** Words that are their own values. */
export const same = <const T extends string>(...words: readonly T[]): Readonly<Record<T, T>> =>
  Object.fromEntries(words.map((word) => [word, word])) as Record<T, T>;

/** `true`, `false`, `1` or `0`. */
export const flag = (unset: 'true' | 'false', wording: Wording): Option<boolean> =>
  choice({ true: true, false: false, 1: true, 0: false }, { ...wording, unset });

/** Text of a grammar; an absent field has the value of the text `unset`, or else `fallback`. */
export function text<T>(
  grammar: OptionParser<T>,
  { fallback, unset, ...wording }: Wording & { fallback: NoInfer<T>; unset?: string },
): Option<T> {
  const { parse, expected, examples } = grammar;
  const meta = { examples: [...examples], ...(unset !== undefined && { default: unset }) };
  return option(readable(parse, meta), { ...wording, fallback, expected });
}

/** Text of a grammar, plain or per type of subject: `name[person]=…`. */
export function perSubject<T>(grammar: OptionParser<T>, wording: Wording): Option<BySubject<T>> {
  const { expected, examples } = grammar;
  const parse = (given: string) => (given.length <= maxTextLength ? grammar.parse(given) : undefined);
  const plain = (given: string): BySubject<T> | undefined => {
    const any = parse(given);
    return any === undefined ? undefined : { any };
  };
  return {
    ...option(readable(plain, { examples: [...examples] }), { ...wording, fallback: {}, expected }),
    perSubject: true,
    read(name, form) {
      const parsed = parseBySubject(name, form.text, { ...grammar, parse });
      if ('value' in parsed) return parsed.value;
      throw invalidOption(wording.invalid, expected, parsed.invalid);
    },
  };
}

/** Reads the options in the order of their declaration; throws the error of the first invalid one. */
export function readOptions<F extends Readonly<Record<string, Option<unknown>>>>(
  options: F,
  form: Form,
): OptionValues<F> {
  const values: Record<string, unknown> = {};
  for (const name in options) values[name] = options[name]?.read(name, form);
  return values as OptionValues<F>;
}
