import { z } from 'zod';
import { credits, text, time, whole } from '../../requestParameters.ts';

export const newAccount = z.object({ name: text(200) });
export const newKey = z.object({ label: text(200).optional() });
export const posting = z.object({
  kind: z.enum(['grant', 'adjust']),
  credits,
  reference: text(200).optional(),
  note: text(1000).optional(),
});
export const refunding = z.object({ reservation: whole, note: text(1000).optional() });
export const span = z.object({ from: time.optional(), to: time.optional() });
export const page = span.extend({
  after: whole.optional(),
  limit: whole.pipe(z.number().min(1).max(10_000)).default(1000),
});
