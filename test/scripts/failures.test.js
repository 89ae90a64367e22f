import { once } from 'node:events';
import { Readable } from 'node:stream';
import test from 'ava';
import { collectFailures, tellFailures } from '../../scripts/test/failures.js';

test.serial(
  'tests that failed and processes that ended early are told again, and nothing else',
  async (t) => {
    const output = Readable.from([
      '  ✔ a › one (5ms)\n  \u001b[31m✘ [fail]: b › two Value is not ',
      'truthy\u001b[39m\n    a detail of the failure\n',
      '\n  ✘ build/ts/test/c.test.js exited due to SIGSEGV\n  ℹ said ✘ here\n  2 tests failed\n',
    ]);
    const failures = collectFailures(output);
    await once(output, 'end');
    const said = [];
    const { log } = console;
    console.log = (text) => said.push(text);
    t.teardown(() => {
      console.log = log;
    });
    tellFailures(failures);
    tellFailures([]);
    t.deepEqual(said, [
      '\n── failed',
      '   [fail]: b › two Value is not truthy',
      '   build/ts/test/c.test.js exited due to SIGSEGV',
    ]);
  },
);
