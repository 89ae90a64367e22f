import { readFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import type { CreatedKey } from '../../src/accounts/accounts.ts';
import { hashKey } from '../../src/accounts/keyFormat.ts';
import { SignIns } from '../../src/accounts/signIns.ts';
import { standardBilling } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import { testStores } from '../support/stores.ts';

test('a key opens its own account and no other', async (t) => {
  const { accounts } = await testStores(t);
  const ada = await accounts.create('Ada');
  const bob = await accounts.create('Bob');
  const keys: CreatedKey[] = [];
  for (const { id } of [ada, bob, ada]) keys.push(await accounts.createKey(id, 'laptop'));
  t.deepEqual(await Promise.all(keys.map(({ key }) => accounts.authenticate(hashKey(key)))), [ada, bob, ada]);
  t.is(new Set(keys.map(({ key }) => key)).size, 3);
  for (const { key } of keys) t.regex(key, /^cutout_[0-9a-hjkmnp-tv-z]{32}$/);
});

test('an incomplete key opens nothing', async (t) => {
  const { accounts } = await testStores(t);
  const { key, prefix } = await accounts.createKey((await accounts.create('Ada')).id);
  for (const wrong of ['', prefix, key.slice(0, -1), `${key}0`, key.toUpperCase(), ` ${key}`, 'ключ', '\0']) {
    t.is(await accounts.authenticate(hashKey(wrong)), undefined, JSON.stringify(wrong));
  }
});

test('a revoked key is rejected from the next call on; other keys of the account stay valid', async (t) => {
  const { accounts, clock } = await testStores(t);
  const account = await accounts.create('Ada');
  const [lost, kept] = [await accounts.createKey(account.id), await accounts.createKey(account.id)];
  t.deepEqual(await accounts.authenticate(hashKey(lost.key)), account);
  t.true(await accounts.revokeKey(lost.id));
  t.false(await accounts.revokeKey(lost.id));
  t.false(await accounts.revokeKey('key_unknown'));
  t.is(await accounts.authenticate(hashKey(lost.key)), undefined);
  t.deepEqual(await accounts.authenticate(hashKey(kept.key)), account);
  t.is((await accounts.keys(account.id)).find(({ id }) => id === lost.id)?.revokedAt, clock.at);
});

test('a revocation by another process is effective at once', async (t) => {
  const { accounts, dataDir } = await testStores(t);
  const { id, key } = await accounts.createKey((await accounts.create('Ada')).id);
  t.truthy(await accounts.authenticate(hashKey(key)));
  const operator = await openStores({ dataDir, billing: standardBilling });
  await operator.accounts.revokeKey(id);
  await operator.close();
  t.is(await accounts.authenticate(hashKey(key)), undefined);
});

test('the database files contain no key', async (t) => {
  const stores = await testStores(t);
  const { key } = await stores.accounts.createKey((await stores.accounts.create('Ada')).id);
  await stores.accounts.authenticate(hashKey(key));
  await stores.accounts.flush();
  const secret = key.slice('cutout_'.length + 4);
  for (const name of ['books.db', 'books.db-wal']) {
    t.false(readFileSync(path.join(stores.dataDir, name)).includes(secret), name);
  }
});

test('the listed prefix is too short to guess the key', async (t) => {
  const { accounts } = await testStores(t);
  const { id } = await accounts.create('Ada');
  const prefixes: (string | undefined)[] = [];
  for (const key of ['cutout_0123456789abcdefghjkmnpqrstvwxyz', 'hunter2', 'abc', 'a-long-key-of-the-owner'])
    prefixes.push((await accounts.addKey(id, '', key))?.prefix);
  t.deepEqual(prefixes, ['cutout_0123', 'h', '', 'a-lo']);
});

test('the same key cannot be added twice', async (t) => {
  const { accounts } = await testStores(t);
  const [ada, bob] = [await accounts.create('Ada'), await accounts.create('Bob')];
  t.truthy(await accounts.addKey(ada.id, '', 'chosen by hand'));
  t.is(await accounts.addKey(bob.id, '', 'chosen by hand'), undefined);
  t.deepEqual(await accounts.authenticate(hashKey('chosen by hand')), ada);
});

test('the last use of a key survives a restart', async (t) => {
  const { accounts, clock, dataDir, close } = await testStores(t);
  const { id } = await accounts.create('Ada');
  const { key } = await accounts.createKey(id);
  t.is((await accounts.keys(id))[0]?.lastUsedAt, null);
  clock.forward(5000);
  await accounts.authenticate(hashKey(key));
  await close();
  const again = await openStores({ dataDir, billing: standardBilling, now: clock.now });
  t.is((await again.accounts.keys(id))[0]?.lastUsedAt, clock.at);
  await again.close();
});

test('a deleted account gets no new key, and a key it still has opens nothing', async (t) => {
  const { accounts, database } = await testStores(t);
  const { id } = await accounts.create('Ada');
  const { key } = await accounts.createKey(id);
  await accounts.erase(id);
  await t.throwsAsync(accounts.createKey(id), { code: 'STORE_UNKNOWN_ACCOUNT', message: /deleted/ });
  t.is((await accounts.keys(id)).length, 1);
  await database.run('UPDATE api_key SET revoked_at = NULL');
  t.is(await accounts.authenticate(hashKey(key)), undefined);
  t.is(await accounts.owner(key), undefined);
});

test('a deleted account gets no new link, and an earlier one opens nothing', async (t) => {
  const { accounts, database, clock } = await testStores(t);
  const signIns = new SignIns(database, clock.now);
  const { id } = await accounts.create('Ada');
  const link = await signIns.createLink(id);
  t.true(await signIns.isGood(link));
  await accounts.erase(id);
  t.false(await signIns.isGood(link));
  t.is(await signIns.takeLink(link), undefined);
  await t.throwsAsync(signIns.createLink(id), { code: 'STORE_UNKNOWN_ACCOUNT' });
  await t.throwsAsync(signIns.createLink('acc_none'), { code: 'STORE_UNKNOWN_ACCOUNT' });
});

test('an unknown account gets no key', async (t) => {
  const { accounts } = await testStores(t);
  await t.throwsAsync(accounts.createKey('acc_none'), { code: 'STORE_UNKNOWN_ACCOUNT' });
});

test('an account has a bounded number of keys; of revoked ones the oldest are forgotten', async (t) => {
  const { accounts, database } = await testStores(t);
  const { id } = await accounts.create('Ada');
  await database.run(
    `INSERT INTO api_key (id, account_id, bucket, hash, prefix, label, created_at, revoked_at)
     WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 1000)
     SELECT 'key_' || n, @id, n, CAST(printf('%032d', n) AS BLOB), 'p', '', n, iif(n > 998, n, NULL) FROM number`,
    { id },
  );
  await accounts.createKey(id);
  await accounts.createKey(id);
  const keys = await accounts.keys(id);
  t.is(keys.length, 1000);
  t.true(keys.every(({ revokedAt }) => revokedAt === null));
  await t.throwsAsync(accounts.createKey(id), { code: 'STORE_KEYS' });
  await accounts.revokeKey('key_1');
  await accounts.createKey(id);
  t.is((await accounts.keys(id)).length, 1000);
});
