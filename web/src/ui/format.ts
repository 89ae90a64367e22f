/** Numbers and times in the reader's language and time zone. */

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

export const at = (iso: string | null): string => (iso === null ? 'never' : dateTime.format(new Date(iso)));
export const on = (iso: string): string => date.format(new Date(iso));

/** '0.25', '−1', '+50'. */
export const signed = (amount: number): string =>
  amount > 0 ? `+${amount}` : amount < 0 ? `−${-amount}` : '0';

export const credits = (amount: number): string => `${amount} ${amount === 1 ? 'credit' : 'credits'}`;

export const bytes = (count: number): string =>
  count < 1e6 ? `${(count / 1e3).toFixed(0)} kB` : `${(count / 1e6).toFixed(1)} MB`;

/** A price given in the smallest unit of its currency, whose number per whole unit depends on the currency. */
export function price(amount: number, currency: string): string {
  const format = new Intl.NumberFormat(undefined, { style: 'currency', currency: currency.toUpperCase() });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(amount / 10 ** digits);
}
