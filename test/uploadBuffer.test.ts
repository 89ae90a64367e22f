import test from 'ava';
import fc from 'fast-check';
import { freeBuffer, UploadBuffer } from '../src/uploadBuffer.ts';

const pieces = fc.array(fc.uint8Array({ maxLength: 300_000 }), { maxLength: 8 });

test('pieces are joined, whatever length was announced', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(pieces, fc.nat({ max: 3_000_000 }), (arrays, expected) => {
        const buffers = arrays.map((array) => Buffer.from(array));
        const whole = Buffer.concat(buffers);
        const upload = new UploadBuffer(expected, Math.max(expected, whole.length));
        for (const buffer of buffers) upload.add(buffer);
        return upload.size === whole.length && upload.take().equals(whole);
      }),
      { numRuns: 100 },
    ),
  );
});

test('a file of known length takes no more memory than its length and is never moved', (t) => {
  const upload = new UploadBuffer(1000, 5000);
  upload.add(Buffer.alloc(1, 7));
  const { buffer } = upload.take();
  for (let i = 0; i < 999; i++) upload.add(Buffer.alloc(1, i));
  t.is(upload.take().buffer, buffer);
  t.is(buffer.byteLength, 1000);
});

test('a file of unknown length grows up to the limit', (t) => {
  const most = 700 * 1024;
  const upload = new UploadBuffer(0, most);
  for (let i = 0; i < 700; i++) upload.add(Buffer.alloc(1024, i));
  const file = upload.take();
  t.is(file.length, most);
  t.is(file.buffer.byteLength, most);
  t.is(file[699 * 1024], 699 % 256);
});

test('no bytes make an empty file', (t) => {
  t.is(new UploadBuffer(0, 10).take().length, 0);
});

test('what is freed is gone at once, with what was taken of it', (t) => {
  const upload = new UploadBuffer(20_000, 20_000);
  upload.add(Buffer.alloc(20_000, 7));
  const file = upload.take();
  upload.free();
  t.deepEqual([file.length, file.buffer.byteLength, upload.size], [0, 0, 0]);
});

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
