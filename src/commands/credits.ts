import type { PostOutcome, PostRequest } from '../billing/postings.ts';
import { formatCredits } from '../billing/price.ts';
import type { BookedPurchase, Purchase } from '../billing/stripeCheckout.ts';
import type { Transactional } from '../billing/transaction.ts';
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

interface RefundRequest {
  readonly accountId: string;
  /** Number of the reserve entry in the statement. */
  readonly reservation: number;
  readonly note?: string | undefined;
}

/** Refunds a charge; false, without an audit event, if it was refunded before. Rejects as `Postings.refund` does. */
export const refundCharge = (
  context: CommandContext,
  { accountId, reservation, note }: RefundRequest,
): Promise<boolean> =>
  inTransaction(context, async ({ stores, record }) => {
    const refunded = await stores.ledger.refund(accountId, reservation, note);
    if (refunded) {
      const detail =
        note === undefined ? `reservation ${reservation}` : `reservation ${reservation}: ${note}`;
      await record({ action: 'credits.refund', subject: accountId, detail });
    }
    return refunded;
  });

/**
 * Books purchased credits. A payment for a deleted account is booked as well; otherwise Stripe would repeat
 * the event for days and nobody could find it afterwards. The audit event then says what to refund.
 */
export const bookPurchase = (
  stores: Transactional,
  { accountId, amount, session, event }: Purchase,
): Promise<BookedPurchase> =>
  inTransaction({ stores, actor: { id: null } }, async (transaction) => {
    const { deletedAt } = await transaction.stores.accounts.lock(accountId);
    const isDeleted = deletedAt !== null;
    const late = 'paid after the account was deleted';
    const { outcome } = await transaction.stores.ledger.post(accountId, {
      kind: 'purchase',
      amount,
      reference: `stripe ${session}`,
      note: isDeleted ? `${event}: ${late}` : event,
    });
    if (outcome === 'insufficient') throw new Error('A purchase cannot lack credits.');
    if (outcome === 'duplicate') return 'duplicate';
    const what = isDeleted
      ? `${late}: refund Stripe's session ${session}, then \`cutout credits adjust\``
      : `Stripe's session ${session}`;
    const detail = `${formatCredits(amount)} ${what}`;
    await transaction.record({ action: 'credits.purchase', subject: accountId, detail });
    return isDeleted ? 'unclaimed' : 'posted';
  });
