import { UserError } from '../errors.ts';
import { formatCredits, parseCredits, type QuarterCredits } from './price.ts';

export interface Pack {
  /** Identifies the pack in requests: its credits, '50'. */
  readonly id: string;
  readonly credits: QuarterCredits;
  /** The price in the currency's smallest unit, as payment services count. */
  readonly price: number;
  /** ISO 4217, lower case. */
  readonly currency: string;
}

/** `<credits>=<price> <currency>`, separated by commas: '50=9.00 EUR, 500=49 EUR'. Throws UserError. */
export function parsePacks(text: string): readonly Pack[] {
  const packs = text
    .split(',')
    .filter((one) => one.trim() !== '')
    .map((one) => {
      const [, amount = '', price = '', code = ''] =
        /^\s*([\d.]+)\s*=\s*([\d.]+)\s*([A-Za-z]{3})\s*$/.exec(one) ?? [];
      const credits = parseCredits(amount);
      const minor = minorUnits(price, code.toUpperCase());
      if (credits === undefined || credits <= 0 || minor === undefined) {
        throw new UserError(`Not a pack of credits: "${one.trim()}". Expected e.g. 50=9.00 EUR.`);
      }
      return Object.freeze({
        id: formatCredits(credits),
        credits,
        price: minor,
        currency: code.toLowerCase(),
      });
    });
  if (new Set(packs.map(({ id }) => id)).size < packs.length)
    throw new UserError('Two packs have the same credits.');
  return Object.freeze(packs);
}

/** Decimal digits of a currency's price: 2 for EUR, 0 for JPY. */
const digitsOf = (currency: string): number =>
  new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ?? 2;

/** Undefined for unknown currencies, for 0 and for more digits than the currency has. */
function minorUnits(price: string, currency: string): number | undefined {
  if (!Intl.supportedValuesOf('currency').includes(currency)) return undefined;
  const digits = digitsOf(currency);
  const [, whole, fraction = ''] = /^(\d{1,9})(?:\.(\d{1,4}))?$/.exec(price) ?? [];
  if (whole === undefined || fraction.length > digits) return undefined;
  const minor = Number(whole + fraction.padEnd(digits, '0'));
  return minor > 0 ? minor : undefined;
}

/** The packs in the format of `parsePacks`. */
export const formatPacks = (packs: readonly Pack[]): string =>
  packs
    .map(
      ({ id, price, currency }) =>
        `${id}=${(price / 10 ** digitsOf(currency)).toFixed(digitsOf(currency))} ${currency.toUpperCase()}`,
    )
    .join(', ');
