import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { credits, quarters } from '../../src/billing/price.ts';
import { ensureLocalAccount, localAccountId } from '../../src/commands/ensureLocalAccount.ts';
import { type TestBooks, testBooks } from '../support/books.ts';

const start = (books: TestBooks, givenKey?: string) =>
  ensureLocalAccount({ books, dataDir: books.dataDir, givenKey, grant: credits(1000) });

test('the first start makes an account, a key and a grant; later ones find them', async (t) => {
  const books = await testBooks(t);
  const first = await start(books);
  t.true(first.created);
  t.is((await books.accounts.authenticate(first.key ?? ''))?.id, localAccountId);
  const file = path.join(books.dataDir, 'local-key');
  t.is(readFileSync(file, 'utf8'), `${first.key}\n`);
  t.is(statSync(file).mode & 0o777, 0o600);

  const second = await start(books);
  t.deepEqual(second, { ...first, created: false });
  t.is((await books.accounts.keys(localAccountId)).length, 1);
  t.is((await books.ledger.balance(localAccountId)).credits, credits(1000));
  t.deepEqual(await books.ledger.verify(), []);
});

test('a given key becomes the key of the first start', async (t) => {
  const books = await testBooks(t);
  const first = await start(books, 'chosen by the owner');
  t.is(first.key, 'chosen by the owner');
  t.is((await books.accounts.authenticate('chosen by the owner'))?.id, localAccountId);
  t.deepEqual(await start(books, 'chosen by the owner'), { ...first, created: false });
  t.is((await start(books)).key, 'chosen by the owner');
});

test('another node with the same given key, or a lost folder, adds no key', async (t) => {
  const books = await testBooks(t);
  await start(books, 'chosen by the owner');
  rmSync(path.join(books.dataDir, 'local-key'));
  const second = await start(books, 'chosen by the owner');
  t.is(second.key, 'chosen by the owner');
  t.false(second.givenKeyIgnored);
  t.is((await books.accounts.keys(localAccountId)).length, 1);
});

test('a key given later is not added, and the caller hears of it', async (t) => {
  const books = await testBooks(t);
  const { key } = await start(books);
  const second = await start(books, 'too late');
  t.is(second.key, key);
  t.true(second.givenKeyIgnored);
  t.is(await books.accounts.authenticate('too late'), undefined);
});

test('a start that was cut off after the key was written is completed with that key', async (t) => {
  const books = await testBooks(t);
  writeFileSync(path.join(books.dataDir, 'local-key'), 'written before the cut\n');
  t.is((await start(books)).key, 'written before the cut');
  t.is((await books.accounts.authenticate('written before the cut'))?.id, localAccountId);
});

test('a start that was cut off before the grant is completed without a second one', async (t) => {
  const books = await testBooks(t);
  await books.accounts.create('Local account', localAccountId);
  await start(books);
  await start(books);
  t.is((await books.ledger.balance(localAccountId)).credits, credits(1000));
});

test('a changed grant leaves an account that had its own alone', async (t) => {
  const books = await testBooks(t);
  await start(books);
  await ensureLocalAccount({ books, dataDir: books.dataDir, grant: credits(5) });
  t.is((await books.ledger.balance(localAccountId)).credits, credits(1000));
});

test('without the kept key there is a new one; a revoked one stays revoked', async (t) => {
  const books = await testBooks(t);
  const first = await start(books);
  rmSync(path.join(books.dataDir, 'local-key'));
  const second = await start(books);
  t.truthy(second.key);
  t.not(second.key, first.key);
  for (const { id } of await books.accounts.keys(localAccountId)) await books.accounts.revokeKey(id);
  t.is((await start(books)).key, undefined);
});

test('a grant of nothing is no entry', async (t) => {
  const books = await testBooks(t);
  await ensureLocalAccount({ books, dataDir: books.dataDir, grant: quarters(0) });
  t.deepEqual(await books.ledger.statement(localAccountId), []);
});
