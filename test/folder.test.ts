import { spawnSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { UserError } from '../src/errors.ts';
import { makeFolder } from '../src/folder.ts';
import { testFolder } from './support/stores.ts';

test('a folder is created with its parents, and not changed if it exists', (t) => {
  const top = path.join(testFolder(t), 'a');
  const folder = path.join(top, 'b', 'c');
  makeFolder('data folder', folder, 0o700);
  makeFolder('data folder', folder, 0o700);
  t.is(statSync(top).mode & 0o777, 0o700);
  t.is(statSync(folder).mode & 0o777, 0o700);
});

test('an error names the folder that cannot be created', (t) => {
  const file = path.join(testFolder(t), 'file');
  writeFileSync(file, '');
  const places = [file, path.join(file, 'x')];
  for (const place of places) {
    const error = t.throws(() => makeFolder('data folder', place), { instanceOf: UserError });
    t.true(error.message.startsWith(`The data folder ${place} cannot be created: `), error.message);
  }
});

// In a separate process, because an endless loop in native code could not be stopped.
test('a parent that exists and refuses new entries with ENOENT causes an error', (t) => {
  const place = '/proc/cutout-test/x';
  const code = `import { makeFolder } from ${JSON.stringify(import.meta.resolve('../src/folder.js'))};
    try { makeFolder('data folder', '${place}'); } catch (error) { console.log(error.message); }`;
  const ended = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    timeout: 20_000,
    killSignal: 'SIGKILL',
    encoding: 'utf8',
  });
  t.is(ended.signal, null);
  t.true(ended.stdout.startsWith(`The data folder ${place} cannot be created: `), ended.stdout);
});
