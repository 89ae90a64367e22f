import test from 'ava';
import { sources } from '../docs/documents.ts';

/** What moves keys, credits or accounts, and what deletes images. */
const changes =
  /\.(createKey|addKey|revokeKey|erase|accountOf|takeLink|createOnce)\(|\baccounts\.create\(|\bledger\.(post|refund)\(|\bimprove\.remove\(/;

const changing = (folder: string) =>
  sources()
    .filter(({ name, text }) => name.startsWith(`${folder}/`) && changes.test(text))
    .map(({ name }) => name);

test('command line and HTTP change accounts, keys, credits and images through commands alone', (t) => {
  t.deepEqual([...changing('src/cli'), ...changing('src/http')], []);
  // The expression still knows them.
  t.true(changing('src/commands').length >= 7);
});
