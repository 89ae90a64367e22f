declare const quarterCredits: unique symbol;

/** An integer number of quarter credits: 4 are 1 credit. */
export type QuarterCredits = number & { readonly [quarterCredits]: true };

/** Largest amount of one ledger transaction and of a balance; far below the limit of exact integers. */
const largest = 4e12;

export function isQuarterCredits(value: number): value is QuarterCredits {
  return Number.isInteger(value) && Math.abs(value) <= largest;
}

/** Throws RangeError for fractions and for more than 10^12 credits. */
export function quarters(value: number): QuarterCredits {
  if (!isQuarterCredits(value)) throw new RangeError(`Not a whole number of quarter credits: ${value}.`);
  return value;
}

/** The unit of the ledger, in credits. */
const quarter = 0.25;

/** Requirement for amounts in credits, in words. */
export const creditSteps = `credits in steps of ${quarter}`;

/** Throws RangeError unless a multiple of `quarter`. */
export const credits = (value: number): QuarterCredits => quarters(value / quarter);

/** Returns an amount in credits, as a JSON number. */
export const toCredits = (amount: QuarterCredits): number => amount * quarter;

/** '0', '0.25', '1', '49.75', '-0.5': the shortest form, never '1.0' (docs/contract.md section 7.1). */
export const formatCredits = (amount: QuarterCredits): string => String(toCredits(amount));

/** Reads '10', '0.25', '+3', '-1.50'; undefined for anything that is not a multiple of `quarter`. */
export function parseCredits(text: string): QuarterCredits | undefined {
  if (!/^[+-]?\d{1,13}(\.\d{1,4})?$/.test(text)) return undefined;
  const value = Number(text) / quarter;
  return isQuarterCredits(value) ? value : undefined;
}

/** Cost of a result of this tier if no free call pays for it. 0: not charged. */
export interface PriceList {
  readonly preview: QuarterCredits;
  readonly full: QuarterCredits;
}

export type Tier = keyof PriceList;

/** Note of entries for work done at a price of 0, which records why nothing was charged. */
export const priceOfZero = 'price 0';

export interface BillingOptions {
  readonly prices: PriceList;
  /** Previews of an account that are free, in a UTC calendar month (0: none) and on a UTC day within it (0: no daily limit). */
  readonly freePreviews: { readonly perMonth: number; readonly perDay: number };
  /** Lifetime of a reservation. Longer than any request may take. */
  readonly reservationSeconds: number;
}

/** The prices and free previews of the contract (section 8), which are the defaults of the settings. */
export const standardBilling: BillingOptions = {
  prices: { preview: credits(0.25), full: credits(1) },
  freePreviews: { perMonth: 50, perDay: 10 },
  reservationSeconds: 900,
};
