import test from 'ava';
import fc from 'fast-check';
import { colourParser } from '../../src/geometry/colour.ts';

for (const [text, colour] of [
  ['fff', [255, 255, 255, 255]],
  ['#FFF', [255, 255, 255, 255]],
  ['#1a2b3c', [26, 43, 60, 255]],
  ['81d4fa', [129, 212, 250, 255]],
  ['81d4fa77', [129, 212, 250, 119]],
  ['#0f08', [0, 255, 0, 136]],
  ['#00000000', [0, 0, 0, 0]],
  ['green', [0, 128, 0, 255]],
  ['LightGoldenrodYellow', [250, 250, 210, 255]],
  ['grey', [128, 128, 128, 255]],
  ['rebeccapurple', [102, 51, 153, 255]],
  ['transparent', [0, 0, 0, 0]],
] as const) {
  test(`bg_color "${text}" is ${colour}`, (t) => t.deepEqual(colourParser.parse(text), colour));
}

for (const text of [
  '#',
  '#ff',
  '#fffff',
  '#fffffff',
  '#fffffffff',
  '##fff',
  'ggg',
  '#green',
  'rgb(1,2,3)',
  'none',
  'default',
  'toString',
]) {
  test(`bg_color "${text}" is invalid`, (t) => t.is(colourParser.parse(text), undefined));
}

test('eight digits give their bytes, and four repeat each digit', (t) => {
  const byte = fc.integer({ min: 0, max: 255 });
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0');
  fc.assert(
    fc.property(fc.tuple(byte, byte, byte, byte), (bytes) => {
      t.deepEqual(colourParser.parse(bytes.map((value) => hex(value, 2)).join('')), bytes);
      const nibbles = bytes.map((value) => value >> 4);
      t.deepEqual(
        colourParser.parse(`#${nibbles.map((value) => hex(value, 1)).join('')}`),
        nibbles.map((value) => value * 17),
      );
    }),
  );
});
