import { formatCredits } from '../billing/price.ts';
import type { BookedPurchase, Purchase } from '../billing/stripeCheckout.ts';
import type { Transactional } from '../billing/transaction.ts';
import { inTransaction } from './command.ts';

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
