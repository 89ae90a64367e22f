import { z } from 'zod';
import { quarters } from '../../../billing/price.ts';
import { text, time, whole } from '../../parameters.ts';

const amount = z
  .string()
  .regex(/^\d{1,12}(\.(?:0|00|25|5|50|75))?$/, 'expected credits in steps of 0.25, more than 0')
  .transform((value) => quarters(Number(value) * 4))
  .refine((value) => value > 0, 'expected more than 0');

export const link = z.object({ token: text(100) });
export const newKey = z.object({ name: text(100) });
export const checkout = z.object({ pack: text(100) });
export const deletion = z.object({ name: text(200) });
export const grant = z.object({ credits: amount, note: text(500), reference: text(100) });
export const search = z.object({ search: z.string().max(200).default('') });

const filter = z.object({
  kind: z.enum(['grant', 'purchase', 'reserve', 'settle', 'release', 'refund', 'adjust']).optional(),
  from: time.optional(),
  to: time.optional(),
});
export const statementFilter = filter;
export const statementPage = filter.extend({
  before: whole.optional(),
  limit: whole.pipe(z.number().min(1).max(500)).default(50),
});
export const auditPage = z.object({
  before: whole.optional(),
  limit: whole.pipe(z.number().min(1).max(500)).default(50),
});
