import type { Deed } from '../accounts/audit.ts';
import type { PostRequest } from './ledger.ts';
import { formatCredits } from './price.ts';

/** How movements of credits by hand stand in the audit log. */
export const postDeed = (account: string, { kind, amount, note }: PostRequest): Deed => ({
  action: `credits.${kind}`,
  subject: account,
  detail: note === undefined ? formatCredits(amount) : `${formatCredits(amount)}: ${note}`,
});

export const refundDeed = (account: string, reservation: number, note?: string): Deed => ({
  action: 'credits.refund',
  subject: account,
  detail: note === undefined ? `reservation ${reservation}` : `reservation ${reservation}: ${note}`,
});
