import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { UserError } from '../src/errors.ts';
import { accessSentence, makeFolder } from '../src/folder.ts';
import { sayLeftOut } from './fixtures/leftOut.ts';
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

test('folders of another user: one sentence with owner, user and remedy, and the status of a wrong configuration', (t) => {
  if (process.getuid?.() !== 0) return sayLeftOut(t, 'only root can run a program as another user');
  const top = testFolder(t);
  chmodSync(top, 0o755);
  const own = path.join(top, 'own');
  mkdirSync(own, { mode: 0o777 });
  chmodSync(own, 0o777);
  const foreign = path.join(top, 'foreign');
  mkdirSync(foreign, { mode: 0o755 });
  const closed = path.join(top, 'closed');
  mkdirSync(path.join(closed, 'isnet'), { recursive: true, mode: 0o700 });
  chmodSync(closed, 0o755);
  chmodSync(path.join(closed, 'isnet'), 0o700);
  writeFileSync(path.join(closed, 'isnet', 'source.onnx'), '');
  const main = fileURLToPath(new URL('../src/main.js', import.meta.url));
  const start = (settings: Readonly<Record<string, string>>) =>
    spawnSync(process.execPath, [main, 'serve', '--no-pull'], {
      uid: 10_001,
      gid: 10_001,
      env: { ...process.env, HOME: own, CUTOUT_PORT: '0', CUTOUT_SUBJECT_TYPES: 'off', ...settings },
      encoding: 'utf8',
      timeout: 60_000,
    });
  for (const [settings, place] of [
    [{ CUTOUT_DATA_DIR: foreign }, foreign],
    [{ CUTOUT_DATA_DIR: path.join(foreign, 'data') }, foreign],
    [{ CUTOUT_DATA_DIR: own, CUTOUT_MODELS_DIR: closed }, path.join(closed, 'isnet')],
  ] as const) {
    const { status, stderr } = start(settings);
    t.is(status, 78, stderr);
    const lines = stderr.trim().split('\n');
    const last = lines.at(-1) ?? '';
    t.true(last.startsWith('cutout: '), stderr);
    t.true(last.includes(`${place} belongs to user 0 (mode 07`), stderr);
    t.true(last.includes('Cutout runs as user 10001'), stderr);
    t.true(last.includes(`chown -R 10001 ${place}`), stderr);
    t.notRegex(stderr, /^\s+at /m);
  }
});

test('errors that have nothing to do with access have no such sentence', (t) => {
  t.is(accessSentence(new Error('x')), undefined);
  t.is(accessSentence(undefined), undefined);
  t.is(accessSentence(Object.assign(new Error('x'), { code: 'ENOENT', path: '/a' })), undefined);
});

test('a file system without permissions is named as the reason', (t) => {
  const error = Object.assign(new Error('x'), { code: 'EPERM', syscall: 'chmod', path: '/tmp' });
  t.regex(
    accessSentence(error) ?? '',
    /^\/tmp is on a file system that cannot keep a file from other users \(FAT/,
  );
  t.regex(
    accessSentence(Object.assign(new Error('x'), { code: 'EROFS', path: '/tmp/a' })) ?? '',
    /^\/tmp .* read-only\.$/,
  );
});
