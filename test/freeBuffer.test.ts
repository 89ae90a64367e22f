import test from 'ava';
import { freeBuffer } from '../src/freeBuffer.ts';

test('memory of which a buffer is only a part, or only little, is not freed', (t) => {
  const whole = Buffer.alloc(40_000, 7);
  const little = Buffer.alloc(255, 7);
  freeBuffer(whole.subarray(0, 20_000));
  freeBuffer(whole.subarray(20_000));
  freeBuffer(little);
  t.is(whole[39_999], 7);
  t.is(little[254], 7);
  freeBuffer(whole);
  t.is(whole.length, 0);
});
