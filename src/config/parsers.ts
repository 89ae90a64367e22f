import { isIP } from 'node:net';
import path from 'node:path';
import { creditSteps, parseCredits, type QuarterCredits } from '../billing/price.ts';

/** Parsers of settings: each throws an Error whose message completes "NAME must be …". */

export const integer =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new Error(`a whole number from ${min} to ${max}`);
    return value;
  };

export const auto =
  <T>(parse: (text: string) => T) =>
  (text: string): T | 'auto' => {
    if (text === 'auto') return 'auto';
    try {
      return parse(text);
    } catch (error) {
      throw new Error(`auto or ${error instanceof Error ? error.message : ''}`);
    }
  };

export const oneOf =
  <T extends string>(...words: readonly T[]) =>
  (text: string): T => {
    const word = words.find((candidate) => candidate === text.toLowerCase());
    if (!word) throw new Error(`one of ${words.join(', ')}`);
    return word;
  };

/** Bytes: 4G, 1500M; M and G are 2^20 and 2^30, as for containers. */
export const bytes = (text: string): number => {
  const [, number, unit] = /^(\d{1,9})(m|g)i?b?$/i.exec(text) ?? [];
  const value = Number(number) * (unit?.toLowerCase() === 'g' ? 2 ** 30 : 2 ** 20);
  if (!(value > 0)) throw new Error('an amount of memory like 4G or 1500M');
  return value;
};

/** `bytes` backwards. */
export const showBytes = (value: number | 'auto'): string =>
  value === 'auto' ? value : `${Math.round(value / 2 ** 20)}M`;

export const list =
  <T>(parse: (text: string) => T, what: string) =>
  (text: string): readonly T[] => {
    try {
      return Object.freeze(
        text
          .split(',')
          .map((item) => item.trim())
          .filter((item) => item !== '')
          .map(parse),
      );
    } catch {
      throw new Error(what);
    }
  };

/** A price: written in credits, returned in quarter credits. */
export const price = (text: string): QuarterCredits => {
  const amount = parseCredits(text);
  if (amount === undefined || amount < 0) throw new Error(`${creditSteps}, 0 or more`);
  return amount;
};

export const absolutePath = (text: string): string => path.resolve(text);

export const apiKey = (text: string): string => {
  if (!/^[\x21-\x7e]{16,200}$/.test(text))
    throw new Error('16 to 200 visible ASCII characters without white space');
  return text;
};

export const token = (text: string): string => {
  if (!/^[\x21-\x7e]{4,500}$/.test(text)) throw new Error('visible ASCII characters without white space');
  return text;
};

export const webAddress = (text: string): string => {
  if (!/^https?:$/.test(URL.parse(text)?.protocol ?? '')) throw new Error('an http or https address');
  return text;
};

export const listenHost = (text: string): string => {
  if (isIP(text) === 0 && !/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text))
    throw new Error('an IP address or a host name');
  return text;
};
