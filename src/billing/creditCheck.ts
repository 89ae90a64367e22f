import type { Ledger } from './ledger.ts';
import type { PriceList } from './price.ts';
import type { ReserveRequest, Shortfall } from './reservation.ts';

/**
 * Undefined when the account could pay for a result of this size now, with a free preview or credits; nothing is set
 * aside. What `reserve` says later is what counts.
 */
export type CreditCheck = (accountId: string, size: ReserveRequest['size']) => Promise<Shortfall | undefined>;

export const createCreditCheck =
  (ledger: Pick<Ledger, 'balance' | 'freePreviews'>, prices: PriceList): CreditCheck =>
  async (accountId, size) => {
    // `auto` becomes a preview where the credits do not suffice for more.
    const needed = size === 'full' ? prices.full : prices.preview;
    if (needed === 0) return undefined;
    const { credits: balance } = await ledger.balance(accountId);
    if (balance >= needed || (size === 'auto' && balance >= prices.full)) return undefined;
    if (size !== 'full' && (await ledger.freePreviews(accountId)).leftToday > 0) return undefined;
    return { needed, balance };
  };
