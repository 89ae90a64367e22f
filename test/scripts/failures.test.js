import { once } from 'node:events';
import { Readable } from 'node:stream';
import test from 'ava';
import { collectFailures, failureLines } from '../../scripts/test/failures.js';

/** As AVA writes them. */
const said = `
  ✔ a › one (5ms)
  \u001b[31m✘ [fail]: a › two Sides of the result\u001b[39m
    ℹ a line that the test logged
  ✘ [fail]: a › two and a half Error thrown in test

  Uncaught exception in b.test.js

  b.test.js:2

   1: import test from 'ava';
   2:

  Error: late

  › Timeout._onTimeout (file://b.test.js:2:54)

  ✔ a › three
  ✘ build/ts/test/c.test.js exited due to SIGSEGV
  ℹ said ✘ here
  ─

  a › two

  a.test.js:3

   2: test('two', t => {
   3:   t.deepEqual({ a: 1, b: [2] }, { a: 1, b: [3] }, 'Sides of the result');

  Sides of the result

  Difference (- actual, + expected):

    {
      a: 1,
      b: [
  -     2,
  +     3,
      ],
    }

  › file://a.test.js:3:23



  a › two and a half

  Error thrown in test:

  TypeError {
    message: 'the server said no',
  }

  TypeError: the server said no
      at file:///a.test.js:4:29

  ─

  2 tests failed
  1 uncaught exception
`;

async function collected(text) {
  const output = Readable.from([text.slice(0, 100), text.slice(100)]);
  const failures = collectFailures(output);
  await once(output, 'end');
  return failures;
}

test('what failed is told in a line each, with its place and the difference or the error', async (t) => {
  t.deepEqual(failureLines(await collected(said)), [
    '   [fail]: a › two Sides of the result (a.test.js:3) -     2, +     3,',
    "   [fail]: a › two and a half Error thrown in test TypeError { message: 'the server said no',",
    '   Uncaught exception in b.test.js (b.test.js:2) Error: late',
    '   build/ts/test/c.test.js exited due to SIGSEGV',
  ]);
  t.deepEqual(failureLines(await collected('  ✔ a › one\n  1 test passed\n')), []);
});

test('of many failures the first are told, so that the end of a log holds them', async (t) => {
  const many = Array.from({ length: 40 }, (_, i) => `  ✘ [fail]: a › ${i} ${'long '.repeat(100)}\n`);
  const lines = failureLines(await collected(many.join('')));
  t.is(lines.length, 15);
  t.is(lines.at(-1), '   and 26 more');
  t.true(lines.every((line) => line.length <= 240));
});
