import { type CommandContext, inTransaction } from './command.ts';

interface RefundRequest {
  readonly accountId: string;
  /** Number of the reserve entry in the statement. */
  readonly reservation: number;
  readonly note?: string | undefined;
}

/**
 * Refunds a charge; false, without an audit event, if it was refunded before. Rejects as `Postings.refund`
 * does.
 */
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
