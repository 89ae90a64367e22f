import test from 'ava';
import { sources } from '../docs/documents.ts';

/** Functions that change keys, credits or accounts, or delete images. */
const changes =
  /\.(createKey|addKey|revokeKey|erase|accountOf|takeLink|createOnce)\(|\baccounts\.create\(|\bledger\.(post|refund)\(|\bimprove\.remove\(/;

const changing = (folder: string) =>
  sources()
    .filter(({ name, text }) => name.startsWith(`${folder}/`) && changes.test(text))
    .map(({ name }) => name);

test('command line and HTTP change accounts, keys, credits and images through commands only', (t) => {
  t.deepEqual([...changing('src/cli'), ...changing('src/http')], []);
  // The expression still matches them.
  t.true(changing('src/commands').length >= 5);
});
