import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { ensureLocalAccount, localAccountId } from '../../src/accounts/local.ts';
import { credits, quarters } from '../../src/billing/price.ts';
import { type TestBooks, testBooks } from '../support/books.ts';

const start = (books: TestBooks, givenKey?: string) =>
  ensureLocalAccount({ ...books, givenKey, grant: credits(1000) });

test('the first start makes an account, a key and a grant; later ones find them', async (t) => {
  const books = testBooks(t);
  const first = start(books);
  t.true(first.created);
  t.is(books.accounts.authenticate(first.key ?? '')?.id, localAccountId);
  const file = path.join(books.dataDir, 'local-key');
  t.is(readFileSync(file, 'utf8'), `${first.key}\n`);
  t.is(statSync(file).mode & 0o777, 0o600);

  const second = start(books);
  t.deepEqual(second, { ...first, created: false });
  t.is(books.accounts.keys(localAccountId).length, 1);
  t.is((await books.ledger.balance(localAccountId)).credits, credits(1000));
  t.deepEqual(books.ledger.verify(), []);
});

test('a given key becomes the key of the first start', (t) => {
  const books = testBooks(t);
  const first = start(books, 'chosen by the owner');
  t.is(first.key, 'chosen by the owner');
  t.is(books.accounts.authenticate('chosen by the owner')?.id, localAccountId);
  t.deepEqual(start(books, 'chosen by the owner'), { ...first, created: false });
  t.is(start(books).key, 'chosen by the owner');
});

test('a key given later is not added, and the caller hears of it', (t) => {
  const books = testBooks(t);
  const { key } = start(books);
  const second = start(books, 'too late');
  t.is(second.key, key);
  t.true(second.givenKeyIgnored);
  t.is(books.accounts.authenticate('too late'), undefined);
});

test('a start that was cut off after the key was written is completed with that key', (t) => {
  const books = testBooks(t);
  writeFileSync(path.join(books.dataDir, 'local-key'), 'written before the cut\n');
  t.is(start(books).key, 'written before the cut');
  t.is(books.accounts.authenticate('written before the cut')?.id, localAccountId);
});

test('a start that was cut off before the grant is completed without a second one', async (t) => {
  const books = testBooks(t);
  books.accounts.create('Local account', localAccountId);
  start(books);
  start(books);
  t.is((await books.ledger.balance(localAccountId)).credits, credits(1000));
});

test('a changed grant leaves an account that had its own alone', async (t) => {
  const books = testBooks(t);
  start(books);
  ensureLocalAccount({ ...books, grant: credits(5) });
  t.is((await books.ledger.balance(localAccountId)).credits, credits(1000));
});

test('without the kept key there is a new one; a revoked one stays revoked', (t) => {
  const books = testBooks(t);
  const first = start(books);
  rmSync(path.join(books.dataDir, 'local-key'));
  const second = start(books);
  t.truthy(second.key);
  t.not(second.key, first.key);
  for (const { id } of books.accounts.keys(localAccountId)) books.accounts.revokeKey(id);
  t.is(start(books).key, undefined);
});

test('a grant of nothing is no entry', (t) => {
  const books = testBooks(t);
  ensureLocalAccount({ ...books, grant: quarters(0) });
  t.deepEqual(books.ledger.statement(localAccountId), []);
});
