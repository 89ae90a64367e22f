import { createHash } from 'node:crypto';
import test from 'ava';
import { dialects, migrations } from '../../src/store/migrations.ts';

const checksum = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16);

/** Of the steps that databases of users have, by their text for SQLite. */
const released = [
  ['books', '75be2cf9e5d69cd4'],
  ['improve', '314b2974ff73c590'],
  ['sign-in', '45adf6997dc4dc4d'],
  ['nodes', 'cda0b0b4e18e8de2'],
  ['booked', '9ada66f6f576be09'],
  ['answers', 'c240899834c06bec'],
  ['former-accounts', 'f5968f24daaba312'],
  ['later-accounts', '2c8da00a180203ea'],
  ['lists', 'aa902affdb1b80d7'],
  ['statements', '6fdbde91b9775929'],
];

test('steps that were released are not edited: databases know their checksums', (t) => {
  const known = migrations.map(({ name, sql }) => [name, checksum(sql(dialects.sqlite))]);
  t.deepEqual(known.slice(0, released.length), released);
});

test('their text for PostgreSQL is not edited either', (t) => {
  const texts = migrations.slice(0, released.length).map(({ sql }) => sql(dialects.postgres));
  t.is(checksum(texts.join('')), '6c29358a795c1402');
});
