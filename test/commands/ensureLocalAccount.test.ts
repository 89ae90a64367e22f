import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { hashKey } from '../../src/accounts/keyFormat.ts';
import { credits, quarters } from '../../src/billing/price.ts';
import { ensureLocalAccount, localAccountId } from '../../src/commands/ensureLocalAccount.ts';
import { UserError } from '../../src/errors.ts';
import { type TestStores, testStores } from '../support/stores.ts';

const start = (stores: TestStores, givenKey?: string) =>
  ensureLocalAccount({ stores, dataDir: stores.dataDir, givenKey, grant: credits(1000) });

test('the first start creates an account, a key and a grant; later ones find them', async (t) => {
  const stores = await testStores(t);
  const first = await start(stores);
  t.true(first.created);
  t.is((await stores.accounts.authenticate(hashKey(first.key ?? '')))?.id, localAccountId);
  const file = path.join(stores.dataDir, 'local-key');
  t.is(readFileSync(file, 'utf8'), `${first.key}\n`);
  t.is(statSync(file).mode & 0o777, 0o600);

  const second = await start(stores);
  t.deepEqual(second, { ...first, created: false });
  t.is((await stores.accounts.keys(localAccountId)).length, 1);
  t.is((await stores.ledger.balance(localAccountId)).credits, credits(1000));
  t.deepEqual(await stores.ledger.verify(), []);
});

test('a given key becomes the key of the first start', async (t) => {
  const stores = await testStores(t);
  const first = await start(stores, 'chosen by the owner');
  t.is(first.key, 'chosen by the owner');
  t.is((await stores.accounts.authenticate(hashKey('chosen by the owner')))?.id, localAccountId);
  t.deepEqual(await start(stores, 'chosen by the owner'), { ...first, created: false });
  t.is((await start(stores)).key, 'chosen by the owner');
});

test('another node with the same given key, or a lost folder, adds no key', async (t) => {
  const stores = await testStores(t);
  await start(stores, 'chosen by the owner');
  rmSync(path.join(stores.dataDir, 'local-key'));
  const second = await start(stores, 'chosen by the owner');
  t.is(second.key, 'chosen by the owner');
  t.false(second.givenKeyIgnored);
  t.is((await stores.accounts.keys(localAccountId)).length, 1);
});

test('a key configured later is not added, and the caller is informed', async (t) => {
  const stores = await testStores(t);
  const { key } = await start(stores);
  const second = await start(stores, 'too late');
  t.is(second.key, key);
  t.true(second.givenKeyIgnored);
  t.is(await stores.accounts.authenticate(hashKey('too late')), undefined);
});

test('an interrupted start is completed with the key it wrote', async (t) => {
  const stores = await testStores(t);
  writeFileSync(path.join(stores.dataDir, 'local-key'), 'written before the cut\n');
  t.is((await start(stores)).key, 'written before the cut');
  t.is((await stores.accounts.authenticate(hashKey('written before the cut')))?.id, localAccountId);
});

test('a start interrupted before the grant is completed without a second grant', async (t) => {
  const stores = await testStores(t);
  await stores.accounts.create('Local account', localAccountId);
  await start(stores);
  await start(stores);
  t.is((await stores.ledger.balance(localAccountId)).credits, credits(1000));
});

test('a changed grant does not affect an account that already had one', async (t) => {
  const stores = await testStores(t);
  await start(stores);
  await ensureLocalAccount({ stores, dataDir: stores.dataDir, grant: credits(5) });
  t.is((await stores.ledger.balance(localAccountId)).credits, credits(1000));
});

test('a lost key file leads to a new key; a revoked key stays revoked', async (t) => {
  const stores = await testStores(t);
  const first = await start(stores);
  rmSync(path.join(stores.dataDir, 'local-key'));
  const second = await start(stores);
  t.truthy(second.key);
  t.not(second.key, first.key);
  for (const { id } of await stores.accounts.keys(localAccountId)) await stores.accounts.revokeKey(id);
  t.is((await start(stores)).key, undefined);
});

test('a grant of 0 writes no entry', async (t) => {
  const stores = await testStores(t);
  await ensureLocalAccount({ stores, dataDir: stores.dataDir, grant: quarters(0) });
  t.deepEqual(await stores.ledger.statement(localAccountId), []);
});

test('a missing folder is made; where the key cannot be written there is one sentence and no account', async (t) => {
  const stores = await testStores(t);
  const dataDir = path.join(stores.dataDir, 'of', 'another node');
  const at = (folder: string) => ensureLocalAccount({ stores, dataDir: folder, grant: credits(1) });
  // No file can be created in the first one, which exists; the second one cannot be made.
  for (const folder of ['/proc/self', '/proc/none']) {
    const error = await t.throwsAsync(at(folder), { instanceOf: UserError });
    t.regex(error?.message ?? '', /^[^\n]*data folder[^\n]*$/);
  }
  t.is(await stores.accounts.find(localAccountId), undefined);
  const { key } = await at(dataDir);
  t.is(readFileSync(path.join(dataDir, 'local-key'), 'utf8'), `${key}\n`);
});
