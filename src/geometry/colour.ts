import names from 'color-name';
import type { OptionParser } from './optionParser.ts';

/** Straight RGBA, 0 to 255. Alpha 0: no background. */
export type Colour = readonly [red: number, green: number, blue: number, alpha: number];

const named: ReadonlyMap<string, readonly [number, number, number]> = new Map(Object.entries(names));

const hexColour = /^#?([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/;

/** 3, 4, 6 or 8 digits; the short forms repeat every digit. */
function fromHex(digits: string): Colour {
  const pairs = digits.length < 6 ? digits.replaceAll(/./g, '$&$&') : digits;
  const byte = (index: number) => Number.parseInt(pairs.slice(2 * index, 2 * index + 2), 16);
  return [byte(0), byte(1), byte(2), pairs.length === 8 ? byte(3) : 255];
}

export const colourParser: OptionParser<Colour> = {
  parse(text) {
    const word = text.toLowerCase();
    if (word === 'transparent') return [0, 0, 0, 0];
    const [, digits] = hexColour.exec(word) ?? [];
    if (digits !== undefined) return fromHex(digits);
    const rgb = named.get(word);
    return rgb && [...rgb, 255];
  },
  expected: 'a hexadecimal colour of 3, 4, 6 or 8 digits with or without #, a CSS colour name or transparent',
  examples: ['81d4fa', '#fff', '81d4fa77', 'green', 'transparent'],
};
