import { z } from 'zod';
import { type InvalidOption, invalidOption } from '../errors.ts';
import type { Form } from './form.ts';

/**
 * One option of a request, declared once: how it is read, what it means, what is told when it is wrong. The
 * schema takes the text as sent (never empty) and gives the value; JSON Schema and documents follow from it.
 */
export interface Field<T> {
  readonly schema: z.ZodType<T, string>;
  readonly fallback: T;
  readonly invalid: InvalidOption;
  /** The grammar in words: "Expected …". */
  readonly expected: string;
  readonly description: string;
}

export type FieldValues<F> = { readonly [Name in keyof F]: F[Name] extends Field<infer T> ? T : never };

/** `a, b or c` */
const inWords = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

/**
 * One of some words in any case. `words` maps every accepted spelling to what it means, aliases included.
 */
export function choice<T extends string>(
  words: Readonly<Record<string, T>>,
  parts: { fallback: NoInfer<T>; invalid: InvalidOption; description: string },
): Field<T> {
  const spellings = Object.keys(words);
  const meaning = new Map(Object.entries(words).map(([word, value]) => [word.toLowerCase(), value]));
  const schema = z
    .string()
    .meta({ enum: spellings, default: parts.fallback })
    .transform((text, context) => {
      const value = meaning.get(text.toLowerCase());
      if (value !== undefined) return value;
      context.issues.push({ code: 'custom', message: 'unknown word', input: text });
      return z.NEVER;
    });
  return { schema, expected: inWords(spellings), ...parts };
}

/** Words that mean themselves. */
export const same = <const T extends string>(...words: readonly T[]): Readonly<Record<T, T>> =>
  Object.fromEntries(words.map((word) => [word, word])) as Record<T, T>;

/** Reads the options in the order of their declaration; the first that is wrong is the error. */
export function readFields<F extends Readonly<Record<string, Field<unknown>>>>(
  fields: F,
  form: Form,
): FieldValues<F> {
  const values = Object.entries(fields).map(([name, { schema, fallback, invalid, expected }]) => {
    const text = form.text.get(name);
    if (text === undefined) return [name, fallback];
    const parsed = schema.safeParse(text);
    if (!parsed.success) throw invalidOption(invalid, expected, text);
    return [name, parsed.data];
  });
  return Object.fromEntries(values) as FieldValues<F>;
}
