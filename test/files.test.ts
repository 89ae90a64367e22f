import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { checkWritable, writeAtomically } from '../src/files.ts';
import { testFolder } from './support/stores.ts';

const bytes = (...values: number[]) => Uint8Array.from(values);

test('content is a text, bytes, or bytes in pieces, and no other file is left', async (t) => {
  const folder = testFolder(t);
  const written = async (content: Parameters<typeof writeAtomically>[1]) => {
    await writeAtomically(path.join(folder, 'file'), content, 'replace');
    return [...readFileSync(path.join(folder, 'file'))];
  };
  async function* pieces() {
    yield bytes(1, 2);
    yield bytes();
    yield bytes(3);
  }
  t.deepEqual(await written('ab'), [97, 98]);
  t.deepEqual(await written(bytes(4, 5)), [4, 5]);
  t.deepEqual(await written(pieces()), [1, 2, 3]);
  t.deepEqual(readdirSync(folder), ['file']);
});

test('a new file replaces none, the others do', async (t) => {
  const folder = testFolder(t);
  const file = path.join(folder, 'file');
  await writeAtomically(file, 'first', 'new');
  await t.throwsAsync(writeAtomically(file, 'second', 'new'), { code: 'EEXIST' });
  t.is(readFileSync(file, 'utf8'), 'first');
  for (const placement of ['replace', 'replaceDurably'] as const) {
    await writeAtomically(file, placement, placement);
    t.is(readFileSync(file, 'utf8'), placement);
  }
  t.deepEqual(readdirSync(folder), ['file']);
});

test('a failure leaves what was there, and nothing else', async (t) => {
  const folder = testFolder(t);
  const file = path.join(folder, 'file');
  writeFileSync(file, 'before');
  async function* broken() {
    yield bytes(1);
    t.deepEqual(readdirSync(folder).length, 2);
    throw new Error('the source failed');
  }
  await t.throwsAsync(writeAtomically(file, broken(), 'replace'), { message: 'the source failed' });
  mkdirSync(path.join(folder, 'full', 'inside'), { recursive: true });
  await t.throwsAsync(writeAtomically(path.join(folder, 'full'), 'x', 'replaceDurably'));
  t.deepEqual(readdirSync(folder), ['file', 'full']);
  t.is(readFileSync(file, 'utf8'), 'before');
});

test('a file is written while it has its own mode and a temporary name with the prefix', async (t) => {
  const folder = testFolder(t);
  async function* observed() {
    const [name = ''] = readdirSync(folder);
    t.regex(name, /^\.pull-[0-9a-f]{16}\.part$/);
    t.is(statSync(path.join(folder, name)).mode & 0o777, 0o600);
    yield bytes(1);
  }
  await writeAtomically(path.join(folder, 'file'), observed(), 'new', { prefix: '.pull-', mode: 0o600 });
  t.is(statSync(path.join(folder, 'file')).mode & 0o777, 0o600);
});

test('the longest names can be written', async (t) => {
  const name = 'n'.repeat(255);
  const folder = testFolder(t);
  await writeAtomically(path.join(folder, name), 'x', 'new');
  t.deepEqual(readdirSync(folder), [name]);
});

test('a folder that exists is writable, a missing one is not', async (t) => {
  const folder = testFolder(t);
  await checkWritable(folder);
  t.deepEqual(readdirSync(folder), []);
  await t.throwsAsync(checkWritable(path.join(folder, 'missing')), { code: 'ENOENT' });
});
