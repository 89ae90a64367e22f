import test from 'ava';
import { halfWidener } from '../../src/compiler/onnx/half.ts';

const widened = (bits: readonly number[]) => [
  ...new Float32Array(halfWidener()(new Uint8Array(Uint16Array.from(bits).buffer)).buffer),
];

test('known numbers are converted exactly', (t) => {
  t.deepEqual(widened([0x0000, 0x3c00, 0xc000, 0x7bff, 0x0001, 0x0400, 0x3555]), [
    ...[0, 1, -2, 65504, 2 ** -24, 2 ** -14, 0.333251953125],
  ]);
  t.true(Object.is(widened([0x8000])[0], -0));
});

test('infinities and NaN are kept', (t) => {
  t.deepEqual(widened([0x7c00, 0xfc00]), [Infinity, -Infinity]);
  t.true(Number.isNaN(widened([0x7e01])[0]));
});

test('every finite number is one step above the one before, mirrored below zero', (t) => {
  const wrong: string[] = [];
  const positive = widened(Array.from({ length: 0x7c00 }, (_, bits) => bits));
  const negative = widened(Array.from({ length: 0x7c00 }, (_, bits) => bits | 0x8000));
  for (let bits = 1; bits < 0x7c00; bits++) {
    const exponent = Math.max((bits - 1) >> 10, 1);
    if (Number(positive[bits]) - Number(positive[bits - 1]) !== 2 ** (exponent - 25))
      wrong.push(`at ${bits}`);
    if (positive[bits] !== -Number(negative[bits])) wrong.push(`sign at ${bits}`);
  }
  t.deepEqual(wrong.slice(0, 5), []);
});

test('bytes at an odd address are read, an odd number of bytes is refused', (t) => {
  const bytes = Uint8Array.of(9, 0x00, 0x3c, 0x00, 0xc0).subarray(1);
  t.deepEqual([...new Float32Array(halfWidener()(bytes).buffer)], [1, -2]);
  t.throws(() => halfWidener()(bytes.subarray(1)), { instanceOf: RangeError });
});
