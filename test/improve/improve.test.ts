import { readFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { Command } from 'commander';
import { improveCommand } from '../../src/cli/improve.ts';
import { deleteImage } from '../../src/commands/erase.ts';
import { type Bucket, s3Bucket } from '../../src/improve/bucket.ts';
import { Improve } from '../../src/improve/improve.ts';
import { ImproveTable } from '../../src/store/improveTable.ts';
import { s3Like } from '../support/s3.ts';
import { accountWith, type Cleanup, testFolder, testStores } from '../support/stores.ts';

async function make(t: Cleanup, perDay = 100) {
  const stores = await testStores(t);
  const server = await s3Like(t);
  const parts = { table: new ImproveTable(stores.database), perDay, now: stores.clock.now };
  const withBucket = (bucket: Bucket) => new Improve({ ...parts, bucket });
  const improve = withBucket(s3Bucket(server.options));
  const account = await accountWith(stores, 0);
  const image = { accountId: account, bytes: Buffer.from('picture'), type: 'jpg', width: 4, height: 3 };
  const keep = (more: object = {}) => improve.handIn({ ...image, ...more });
  const remove = (id: string) => deleteImage({ stores, improve, actor: { id: null } }, id);
  const deletions = async () =>
    (await stores.audit.list({ limit: 99 })).filter(({ action }) => action === 'image.delete');
  return { ...stores, stores, server, improve, withBucket, account, image, keep, remove, deletions };
}

test('an image is stored with its attributes', async (t) => {
  const { improve, keep, account, clock } = await make(t);
  const id = await keep({ filename: 'C:\\holiday/cat\n.jpg', tag: ' cats ' });
  t.regex(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const [image] = await improve.list();
  t.deepEqual(image, {
    id,
    accountId: account,
    at: clock.at,
    object: `2026/11/21/${id}.jpg`,
    type: 'jpg',
    bytes: 7,
    width: 4,
    height: 3,
    sha256: '2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97',
    filename: 'cat.jpg',
    tag: 'cats',
  });
  t.is((await improve.bytes(image ?? t.fail()))?.toString(), 'picture');
});

test('labels are truncated to 255 characters, empty ones are none', async (t) => {
  const { improve, keep } = await make(t);
  await keep({ filename: `${'🐈'.repeat(300)}`, tag: '\u0000 ' });
  t.is(Array.from((await improve.list())[0]?.filename ?? '').length, 255);
  t.is((await improve.list())[0]?.tag, null);
});

test('100 per UTC day and account, also when they are concurrent', async (t) => {
  const { improve, image, clock, accounts } = await make(t);
  clock.set('2026-11-21T23:59:30Z');
  const outcomes = await Promise.allSettled(Array.from({ length: 130 }, () => improve.handIn(image)));
  t.is(outcomes.filter(({ status }) => status === 'fulfilled').length, 100);
  t.like(outcomes.at(-1), { reason: { code: 'rate_limit_exceeded', retryAfter: 30 } });
  const { id } = await accounts.create('other');
  await t.notThrowsAsync(improve.handIn({ ...image, accountId: id }));
  clock.forward(30_000);
  await t.notThrowsAsync(improve.handIn(image));
});

test('others are served while a large image is hashed', async (t) => {
  const { improve, image } = await make(t);
  let [turns, done] = [0, false];
  const count = () => {
    turns += 1;
    if (!done) setImmediate(count);
  };
  count();
  // Its quota is used up: nothing else takes a turn.
  const table = { insertPending: async () => 'full' } as unknown as ImproveTable;
  const full = new Improve({ table, bucket: {} as Bucket, perDay: 1, now: () => 0 });
  const large = { ...image, bytes: Buffer.alloc(9 * 2 ** 20) };
  await t.throwsAsync(full.handIn(large), { code: 'rate_limit_exceeded' });
  done = true;
  t.true(turns > 7, `${turns}`);
  await t.notThrowsAsync(improve.handIn(image));
});

test('a quota of 0 is no limit', async (t) => {
  const { improve, image } = await make(t, 0);
  for (let i = 0; i < 3; i++) await t.notThrowsAsync(improve.handIn(image));
});

test('if the bucket fails, nothing is stored and the quota is not used', async (t) => {
  const { improve, image, server } = await make(t, 1);
  server.broken = true;
  await t.throwsAsync(improve.handIn(image));
  server.broken = false;
  t.deepEqual(await improve.list(), []);
  await t.notThrowsAsync(improve.handIn(image));
  t.is(server.objects.size, 1);
});

test('images left unfinished by a server that died are swept later, with their bytes', async (t) => {
  const { improve, withBucket, image, server, clock } = await make(t);
  const working = s3Bucket(server.options);
  // The bytes arrive, their confirmation never does.
  const dying: Bucket = {
    ...working,
    put: async (...args) => {
      await working.put(...args);
      return new Promise<never>(() => {});
    },
  };
  void withBucket(dying).handIn(image);
  while (server.objects.size === 0) await new Promise((done) => setTimeout(done, 5));
  t.deepEqual(await improve.list(), []);
  t.is(await improve.sweep(), 0);
  clock.forward(600_001);
  t.is(await improve.sweep(), 1);
  t.is(server.objects.size, 0);
});

test('nothing of a deleted account is kept, whatever is in progress', async (t) => {
  const { improve, withBucket, keep, account, image, server, accounts } = await make(t);
  const working = s3Bucket(server.options);
  const meanwhile: Bucket = {
    ...working,
    put: async (...args) => {
      await working.put(...args);
      await accounts.erase(account);
    },
  };
  await keep();
  await t.throwsAsync(withBucket(meanwhile).handIn(image), { code: 'auth_failed' });
  t.is(server.objects.size, 1, 'the one from before');
  await t.throwsAsync(improve.handIn(image), { code: 'auth_failed' });
  t.is(server.objects.size, 1);
  // Left behind by a server that died between the two steps of the deletion.
  t.is(await improve.sweep(), 1);
  t.is(server.objects.size, 0);
  t.deepEqual(await improve.list(), []);
});

test('an image is deleted with its bytes, once', async (t) => {
  const { improve, keep, server, remove, deletions } = await make(t);
  const id = await keep();
  t.true(await remove(id));
  t.false(await remove(id));
  t.is(server.objects.size, 0);
  t.deepEqual(await improve.list(), []);
  t.deepEqual(
    (await deletions()).map(({ actor, subject }) => [actor, subject]),
    [[null, id]],
  );
});

test('if the bucket fails to delete, the image is hidden and the same command can be repeated', async (t) => {
  const { improve, keep, server, remove, deletions } = await make(t);
  const id = await keep();
  server.broken = true;
  await t.throwsAsync(remove(id));
  t.deepEqual(await improve.list(), []);
  t.is(server.objects.size, 1);
  server.broken = false;
  t.true(await remove(id));
  t.is(server.objects.size, 0);
  t.false(await remove(id));
  t.is((await deletions()).length, 1);
});

test('the sweep deletes what the bucket did not', async (t) => {
  const { improve, keep, server, remove, clock } = await make(t);
  const id = await keep();
  server.broken = true;
  await t.throwsAsync(remove(id));
  clock.forward(600_001);
  await t.throwsAsync(improve.sweep());
  server.broken = false;
  t.is(await improve.sweep(), 1);
  t.is(server.objects.size, 0);
  t.is(await improve.find(id), undefined);
});

test('operators list, export and delete', async (t) => {
  const { stores, improve, keep, server, clock } = await make(t);
  const cat = await keep({ tag: 'cats' });
  clock.set('2026-11-22T08:00:00Z');
  const dog = await keep({ tag: 'dogs', type: 'png', bytes: Buffer.from('dog') });
  let printed = '';
  const run = async (...args: string[]) => {
    printed = '';
    const out = { write: (text: string) => (printed += text) };
    const program = new Command().addCommand(
      improveCommand({ open: async () => ({ improve, stores, close: async () => {} }), out }),
    );
    await program.parseAsync(['improve', ...args], { from: 'user' });
    return printed;
  };
  t.is(JSON.parse(await run('list', '--format', 'json')).length, 2);
  t.deepEqual(
    JSON.parse(await run('list', '--format', 'json', '--from', '2026-11-22')).map(
      ({ id }: { id: string }) => id,
    ),
    [dog],
  );
  const folder = path.join(testFolder(t), 'out');
  t.is(await run('export', folder, '--tag', 'dogs'), `1 images are in ${folder}.\n`);
  t.is(readFileSync(path.join(folder, `${dog}.png`), 'utf8'), 'dog');
  t.like(JSON.parse(readFileSync(path.join(folder, 'images.jsonl'), 'utf8')), {
    file: `${dog}.png`,
    tag: 'dogs',
  });
  server.objects.clear();
  await t.throwsAsync(run('export', folder), { message: /has lost 2 of them/ });
  await t.throwsAsync(run('delete', cat, 'nothing'), { message: 'There is no image nothing.' });
  t.is(printed, '1 deleted.\n');
});
