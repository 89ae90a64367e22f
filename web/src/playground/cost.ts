import type { Overview, ServiceOptions } from '../../../src/http/route/console/api.ts';
import { get } from '../lib/console.ts';
import { credits } from '../ui/format.ts';

/** What an account may use for results. */
export interface Balance {
  readonly credits: number;
  /** Previews that are free now: of this day and this month. */
  readonly freeToday: number;
}

/** Of the key's account, or without a key of the one that is signed in; undefined for a wrong key. */
export async function readBalance(key: string): Promise<Balance | undefined> {
  if (key === '') {
    const { credits: left, free } = await get<Overview>('overview');
    return { credits: left, freeToday: free.leftToday };
  }
  const response = await fetch('/v1.0/account', { headers: { 'X-Api-Key': key } });
  if (!response.ok) return undefined;
  const { data } = (await response.json()) as {
    data: { attributes: { credits: { total: number }; api: { free_calls: number } } };
  };
  const { credits: left, api } = data.attributes;
  return {
    credits: left.total,
    freeToday: Number(response.headers.get('x-free-previews-today') ?? api.free_calls),
  };
}

export interface Cost {
  readonly credits: number;
  readonly words: string;
}

const isPreview = (size: string): boolean => ['', 'preview', 'small', 'regular'].includes(size.toLowerCase());

/** What the next result of this size costs; undefined while it is not known. */
export function costOf(
  size: string,
  balance: Balance | undefined,
  prices: ServiceOptions['prices'] | undefined,
): Cost | undefined {
  if (!balance || !prices) return undefined;
  const whole = size.toLowerCase() === 'auto' ? balance.credits >= prices.full : !isPreview(size);
  if (whole) return { credits: prices.full, words: credits(prices.full) };
  if (prices.preview === 0) return { credits: 0, words: 'free' };
  return balance.freeToday > 0
    ? { credits: 0, words: `free, ${balance.freeToday} left today` }
    : { credits: prices.preview, words: credits(prices.preview) };
}

const item = 'cutout-credits';

/** Whether credits may be used without asking, in this tab. */
export const agreement = {
  given: (): boolean => sessionStorage.getItem(item) !== null,
  give: (): void => sessionStorage.setItem(item, 'yes'),
};
