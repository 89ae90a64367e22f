import { existsSync } from 'node:fs';
import test from 'ava';
import { tests } from '../../scripts/nodeVersions/tests.js';
import { inRoot } from '../../scripts/setup/paths.js';

test('every test that each Node.js runs is there', (t) => {
  t.deepEqual(
    tests.filter((name) => !existsSync(inRoot('test', `${name}.test.ts`))),
    [],
  );
});
