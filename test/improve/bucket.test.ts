import { readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { type Bucket, folderBucket, s3Bucket } from '../../src/improve/bucket.ts';
import { s3Like } from '../support/s3.ts';
import { type Cleanup, testFolder } from '../support/stores.ts';

const buckets: Record<string, (t: Cleanup) => Promise<Bucket>> = {
  folder: async (t) => folderBucket(path.join(testFolder(t), 'new')),
  s3: async (t) => s3Bucket((await s3Like(t)).options),
};

for (const [kind, make] of Object.entries(buckets)) {
  test(`${kind}: an object is returned byte for byte until it is deleted`, async (t) => {
    const bucket = await make(t);
    const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 7919) >> 3);
    await bucket.put('2026/11/21/a.jpg', bytes, 'image/jpeg');
    await bucket.put('2026/11/21/b.png', Buffer.from('b'), 'image/png');
    t.true((await bucket.get('2026/11/21/a.jpg'))?.equals(bytes));
    const piece = await bucket.get('2026/11/21/a.jpg', 100_000, 100_010);
    t.true(piece?.equals(bytes.subarray(100_000, 100_010)));
    t.true((await bucket.get('2026/11/21/a.jpg', 299_999, 400_000))?.equals(bytes.subarray(299_999)));
    t.is(await bucket.get('2026/11/21/none.jpg', 0, 10), undefined);
    await bucket.put('2026/11/21/b.png', Buffer.from('c'), 'image/png');
    t.is((await bucket.get('2026/11/21/b.png'))?.toString(), 'c');
    await bucket.delete('2026/11/21/a.jpg');
    await bucket.delete('2026/11/21/a.jpg');
    t.is(await bucket.get('2026/11/21/a.jpg'), undefined);
    t.truthy(await bucket.get('2026/11/21/b.png'));
  });

  test(`${kind}: a name cannot lead out of the bucket`, async (t) => {
    const bucket = await make(t);
    for (const name of [
      '../a.jpg',
      '/a.jpg',
      'a/../b.jpg',
      'a',
      '',
      'a//b.jpg',
      'a\0.jpg',
      'a.jpg/..',
      './a.jpg',
    ]) {
      await t.throwsAsync(bucket.put(name, Buffer.from('x'), 'image/jpeg'), { instanceOf: RangeError }, name);
      await t.throwsAsync(bucket.get(name), { instanceOf: RangeError });
      await t.throwsAsync(bucket.delete(name), { instanceOf: RangeError });
    }
  });
}

test('folder: images are readable by their owner only, and incomplete ones never appear', async (t) => {
  const folder = testFolder(t);
  const bucket = folderBucket(folder);
  await bucket.put('day/a.jpg', Buffer.from('x'), 'image/jpeg');
  t.is(statSync(path.join(folder, 'day', 'a.jpg')).mode & 0o777, 0o600);
  t.deepEqual(readdirSync(path.join(folder, 'day')), ['a.jpg']);
  writeFileSync(path.join(folder, 'file'), '');
  await t.throwsAsync(folderBucket(path.join(folder, 'file')).put('a.jpg', Buffer.from('x'), 'image/jpeg'));
});

test('s3: the type is sent; a refusal is an error without a secret', async (t) => {
  const server = await s3Like(t);
  await s3Bucket(server.options).put('a.jpg', Buffer.from('x'), 'image/jpeg');
  t.is(server.objects.get('/images/a.jpg')?.type, 'image/jpeg');
  const stranger = s3Bucket({ ...server.options, secretAccessKey: 'another secret' });
  const error = await t.throwsAsync(stranger.put('b.jpg', Buffer.from('x'), 'image/jpeg'));
  t.false(`${error?.message} ${JSON.stringify(error)}`.includes('another secret'));
  await t.throwsAsync(stranger.get('a.jpg'));
  await t.throwsAsync(stranger.delete('a.jpg'));
  t.deepEqual([...server.objects.keys()], ['/images/a.jpg']);
});
