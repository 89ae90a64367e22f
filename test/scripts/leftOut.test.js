import { appendFileSync, existsSync } from 'node:fs';
import test from 'ava';
import { collectLeftOut, tellLeftOut } from '../../scripts/test/leftOut.js';

test.serial('every reason is reported once, with the tests it skips; then the list is removed', (t) => {
  const { CUTOUT_TEST_LEFT_OUT: list } = collectLeftOut();
  const note = (file, title, reason) => appendFileSync(list, `${JSON.stringify({ file, title, reason })}\n`);
  note('b.test.js', 'two', 'no PostgreSQL');
  note('a.test.js', 'one', 'no PostgreSQL');
  note('a.test.js', 'three', 'no Chromium');
  const said = [];
  const { log } = console;
  console.log = (text) => said.push(text);
  t.teardown(() => {
    console.log = log;
  });
  t.is(tellLeftOut(), 3);
  t.deepEqual(said, [
    '\n── left out, for no PostgreSQL',
    '   a.test.js: one',
    '   b.test.js: two',
    '\n── left out, for no Chromium',
    '   a.test.js: three',
  ]);
  t.false(existsSync(list));
  t.is(tellLeftOut(), 0);
});
