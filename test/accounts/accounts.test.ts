import { readFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { openBooks } from '../../src/billing/books.ts';
import { standardBilling } from '../../src/billing/price.ts';
import { nativeBinding, testBooks } from '../support/books.ts';

test('a key opens its own account and no other', (t) => {
  const { accounts } = testBooks(t);
  const ada = accounts.create('Ada');
  const bob = accounts.create('Bob');
  const keys = [ada, bob, ada].map((account) => accounts.createKey(account.id, 'laptop'));
  t.deepEqual(
    keys.map(({ key }) => accounts.authenticate(key)),
    [ada, bob, ada],
  );
  t.is(new Set(keys.map(({ key }) => key)).size, 3);
  for (const { key } of keys) t.regex(key, /^cutout_[0-9a-hjkmnp-tv-z]{32}$/);
});

test('what is not a whole key opens nothing', (t) => {
  const { accounts } = testBooks(t);
  const { key, prefix } = accounts.createKey(accounts.create('Ada').id);
  for (const wrong of ['', prefix, key.slice(0, -1), `${key}0`, key.toUpperCase(), ` ${key}`, 'ключ', '\0']) {
    t.is(accounts.authenticate(wrong), undefined, JSON.stringify(wrong));
  }
});

test('a revoked key opens nothing from the next call on; the others of the account still do', (t) => {
  const { accounts, clock } = testBooks(t);
  const account = accounts.create('Ada');
  const [lost, kept] = [accounts.createKey(account.id), accounts.createKey(account.id)];
  t.deepEqual(accounts.authenticate(lost.key), account);
  t.true(accounts.revokeKey(lost.id));
  t.false(accounts.revokeKey(lost.id));
  t.false(accounts.revokeKey('key_unknown'));
  t.is(accounts.authenticate(lost.key), undefined);
  t.deepEqual(accounts.authenticate(kept.key), account);
  t.is(accounts.keys(account.id).find(({ id }) => id === lost.id)?.revokedAt, clock.at);
});

test('a revocation by another process counts at once', (t) => {
  const { accounts, dataDir } = testBooks(t);
  const { id, key } = accounts.createKey(accounts.create('Ada').id);
  t.truthy(accounts.authenticate(key));
  const operator = openBooks({ dataDir, nativeBinding, billing: standardBilling });
  operator.accounts.revokeKey(id);
  operator.close();
  t.is(accounts.authenticate(key), undefined);
});

test('the files of the books hold no key', (t) => {
  const books = testBooks(t);
  const { key } = books.accounts.createKey(books.accounts.create('Ada').id);
  books.accounts.authenticate(key);
  books.accounts.flush();
  const secret = key.slice('cutout_'.length + 4);
  for (const name of ['books.db', 'books.db-wal']) {
    t.false(readFileSync(path.join(books.dataDir, name)).includes(secret), name);
  }
});

test('the listed prefix is too short to be of use', (t) => {
  const { accounts } = testBooks(t);
  const { id } = accounts.create('Ada');
  const prefixes = [
    'cutout_0123456789abcdefghjkmnpqrstvwxyz',
    'hunter2',
    'abc',
    'a-long-key-of-the-owner',
  ].map((key) => accounts.addKey(id, '', key)?.prefix);
  t.deepEqual(prefixes, ['cutout_0123', 'h', '', 'a-lo']);
});

test('the same key cannot be added twice', (t) => {
  const { accounts } = testBooks(t);
  const [ada, bob] = [accounts.create('Ada'), accounts.create('Bob')];
  t.truthy(accounts.addKey(ada.id, '', 'chosen by hand'));
  t.is(accounts.addKey(bob.id, '', 'chosen by hand'), undefined);
  t.deepEqual(accounts.authenticate('chosen by hand'), ada);
});

test('the last use of a key is kept over a restart', (t) => {
  const { accounts, clock, dataDir, close } = testBooks(t);
  const { id } = accounts.create('Ada');
  const { key } = accounts.createKey(id);
  t.is(accounts.keys(id)[0]?.lastUsedAt, null);
  clock.forward(5000);
  accounts.authenticate(key);
  close();
  const again = openBooks({ dataDir, nativeBinding, billing: standardBilling, now: clock.now });
  t.is(again.accounts.keys(id)[0]?.lastUsedAt, clock.at);
  again.close();
});

test('an unknown account gets no key', (t) => {
  const { accounts } = testBooks(t);
  t.throws(() => accounts.createKey('acc_none'), { code: 'STORE_UNKNOWN_ACCOUNT' });
});
