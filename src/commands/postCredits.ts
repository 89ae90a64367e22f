import type { PostOutcome, PostRequest } from '../billing/postings.ts';
import { formatCredits } from '../billing/price.ts';
import { type CommandContext, inTransaction } from './command.ts';

/**
 * Grants, sells or adjusts credits. Writes no audit event for a reference that counted before or a balance
 * that does not suffice. Rejects with STORE_UNKNOWN_ACCOUNT and STORE_REFERENCE_REUSED.
 */
export const postCredits = (
  context: CommandContext,
  accountId: string,
  request: PostRequest,
): Promise<PostOutcome> =>
  inTransaction(context, async ({ stores, record }) => {
    const { kind, amount, note } = request;
    const posted = await stores.ledger.post(accountId, request);
    if (posted.outcome === 'posted') {
      const detail = note === undefined ? formatCredits(amount) : `${formatCredits(amount)}: ${note}`;
      await record({ action: `credits.${kind}`, subject: accountId, detail });
    }
    return posted;
  });
