import { z } from 'zod';
import { parseCredits } from '../../../billing/price.ts';
import { excerpt, fail } from '../../../errors.ts';

const text = (length: number) => z.string().min(1).max(length);

const amount = z.string().transform((value, context) => {
  const parsed = parseCredits(value);
  if (parsed !== undefined) return parsed;
  context.addIssue({ code: 'custom', message: 'expected credits in steps of 0.25' });
  return z.NEVER;
});

/** A UTC day or an instant, as Unix milliseconds. */
const time = z.union([z.iso.date(), z.iso.datetime()]).transform((value) => Date.parse(value));

const whole = z
  .string()
  .regex(/^\d{1,15}$/, 'expected a whole number')
  .transform(Number);

export const newAccount = z.object({ name: text(200) });
export const newKey = z.object({ label: text(200).optional() });
export const posting = z.object({
  kind: z.enum(['grant', 'adjust']),
  credits: amount,
  reference: text(200).optional(),
  note: text(1000).optional(),
});
export const refunding = z.object({ reservation: whole, note: text(1000).optional() });
export const span = z.object({ from: time.optional(), to: time.optional() });
export const page = span.extend({
  after: whole.optional(),
  limit: whole.pipe(z.number().min(1).max(10_000)).default(1000),
});

/** The parsed fields, or 400 with every field that is wrong. Unknown fields are ignored. */
export function parse<T>(schema: z.ZodType<T>, fields: object): T {
  const result = schema.safeParse(fields);
  if (result.success) return result.data;
  const reasons = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw fail('malformed_request', { detail: excerpt(`${reasons.join('; ')}.`, 500) });
}
