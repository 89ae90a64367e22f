import { z } from 'zod';
import { creditSteps, parseCredits } from '../billing/price.ts';
import { excerpt, malformed } from '../errors.ts';
import type { Context } from './context.ts';

/** Parameters of the operators' API and the console in path, body and query, and parts of their schemas. */

/** The router stores the parameters of the path there. */
export const inPath = (ctx: Context, name: string): string =>
  String((ctx as Context & { params: Readonly<Record<string, string>> }).params[name] ?? '');

export const inBody = (ctx: Context): object => Object.fromEntries(ctx.state.form?.text ?? []);

export const text = (length: number) => z.string().min(1).max(length);

/** A UTC day or an instant, as Unix milliseconds. */
export const time = z.union([z.iso.date(), z.iso.datetime()]).transform((value) => Date.parse(value));

/** Credits in steps of a quarter, as quarter credits. */
export const credits = z.string().transform((value, context) => {
  const parsed = parseCredits(value);
  if (parsed !== undefined) return parsed;
  context.addIssue({ code: 'custom', message: `expected ${creditSteps}` });
  return z.NEVER;
});

export const whole = z
  .string()
  .regex(/^\d{1,15}$/, 'expected a whole number')
  .transform(Number);

/** The parsed fields; throws 400 that names every invalid field. Unknown fields are ignored. */
export function parse<T>(schema: z.ZodType<T>, fields: object): T {
  const result = schema.safeParse(fields);
  if (result.success) return result.data;
  const reasons = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw malformed(excerpt(`${reasons.join('; ')}.`, 500));
}
