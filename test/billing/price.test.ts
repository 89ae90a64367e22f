import test from 'ava';
import fc from 'fast-check';
import { credits, formatCredits, parseCredits, quarters, standardBilling } from '../../src/billing/price.ts';

test('prices are those of the contract', (t) => {
  t.is(formatCredits(standardBilling.prices.preview), '0.25');
  t.is(formatCredits(standardBilling.prices.full), '1');
  t.is(formatCredits(quarters(0)), '0');
});

test('every formatted amount parses to the same amount', (t) => {
  fc.assert(
    fc.property(fc.integer({ min: -4e12, max: 4e12 }), (value) => {
      const text = formatCredits(quarters(value));
      t.regex(text, /^-?\d+(\.(25|5|75))?$/);
      t.is(parseCredits(text), quarters(value));
    }),
  );
});

for (const text of [
  '',
  '0.1',
  '1.3',
  '1e3',
  'NaN',
  'Infinity',
  '0x10',
  ' 1',
  '1.',
  '.5',
  '--1',
  '1,5',
  '9999999999999',
]) {
  test(`'${text}' is not an amount of credits`, (t) => {
    t.is(parseCredits(text), undefined);
  });
}

test('fractions of a quarter and excessive amounts are refused', (t) => {
  t.throws(() => quarters(0.5), { instanceOf: RangeError });
  t.throws(() => credits(0.1), { instanceOf: RangeError });
  t.throws(() => quarters(Number.NaN), { instanceOf: RangeError });
  t.throws(() => credits(1e12 + 1), { instanceOf: RangeError });
});
