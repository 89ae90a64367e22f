import { type AppError, fail } from '../errors.ts';
import { formatCredits, type PriceList, type QuarterCredits } from './price.ts';
import type { ReserveRequest, Shortfall } from './types.ts';

/** 402. */
export function insufficientCredits({ needed, balance }: Shortfall): AppError {
  const amount = formatCredits(needed);
  return fail('insufficient_credits', {
    reason: 'credits',
    detail: `This request needs ${amount} ${amount === '1' ? 'credit' : 'credits'}, the balance is ${formatCredits(balance)}.`,
  });
}

/**
 * Undefined if the account could pay for a result of this size now, with a free preview or credits. Reserves nothing;
 * `reserve` decides later.
 */
export type CreditCheck = (accountId: string, size: ReserveRequest['size']) => Promise<Shortfall | undefined>;

/** Reads what an account can pay with; a `Ledger` does. */
interface Funds {
  balance(accountId: string): Promise<{ readonly credits: QuarterCredits }>;
  freePreviews(accountId: string): Promise<{ readonly leftToday: number }>;
}

export const createCreditCheck =
  (ledger: Funds, prices: PriceList): CreditCheck =>
  async (accountId, size) => {
    // `auto` becomes a preview if the credits do not suffice for more.
    const needed = size === 'full' ? prices.full : prices.preview;
    if (needed === 0) return undefined;
    const { credits: balance } = await ledger.balance(accountId);
    if (balance >= needed || (size === 'auto' && balance >= prices.full)) return undefined;
    if (size !== 'full' && (await ledger.freePreviews(accountId)).leftToday > 0) return undefined;
    return { needed, balance };
  };
