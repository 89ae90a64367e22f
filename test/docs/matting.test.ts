import test from 'ava';
import { kernels, read } from './documents.ts';

/** Values of `constexpr float kName = 0.02F;` by name; files may use one name for different constants. */
function constants(): ReadonlyMap<string, readonly number[]> {
  const values = new Map<string, number[]>();
  for (const { text } of kernels())
    for (const [, name = '', value = ''] of text.matchAll(
      /\bconstexpr [\w:]+ (k\w+) = (-?[\d.]+(?:e-?\d+)?)F?;/g,
    ))
      values.set(name, [...(values.get(name) ?? []), Number(value)]);
  return values;
}

const exponents = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** Numbers of a row: `0.02`, `1/200` as 1 and 200, `2·10⁻⁴` as 0.0002. */
function numbersIn(row: string): number[] {
  const powers = [...row.matchAll(/(?:(\d+(?:\.\d+)?)·)?10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+)/g)].map(
    ([, factor = '1', power = '']) => {
      const digits = Array.from(power, (digit) => exponents.indexOf(digit)).join('');
      return Number(`${factor}e-${digits}`);
    },
  );
  return [...powers, ...[...row.matchAll(/\d+(?:\.\d+)?/g)].map(([number]) => Number(number))];
}

test('docs/matting.md states the value of every constant that it names', (t) => {
  const values = constants();
  const faults: string[] = [];
  let named = 0;
  for (const [row] of read('docs/matting.md').matchAll(/^\|.*\|$/gm))
    for (const [, name = ''] of row.matchAll(/`(k[A-Z]\w*)`/g)) {
      named++;
      const here = numbersIn(row);
      const defined = values.get(name) ?? [];
      if (!defined.some((value) => here.includes(value)))
        faults.push(`${name} is ${defined.join(' or ') || 'not defined'} in native/, the row says: ${row}`);
    }
  t.deepEqual(faults, []);
  t.true(named > 35, `only ${named} constants were found: the pattern has stopped matching`);
});
