import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { withLock } from '../../src/models/lock.ts';

async function folder(t: ExecutionContext): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'cutout-lock-'));
  t.teardown(() => rm(made, { recursive: true }));
  return made;
}

/** Takes the lock, unless it is held: then it does not wait for it. */
async function take(file: string): Promise<'taken' | 'held'> {
  const leaving = new AbortController();
  const onWait = () => leaving.abort();
  const taking = withLock(file, async () => {}, { signal: leaving.signal, onWait });
  await taking.catch((error: unknown) => {
    if (!leaving.signal.aborted) throw error;
  });
  return leaving.signal.aborted ? 'held' : 'taken';
}

test('work under one lock is serialised, and the lock is removed', async (t) => {
  const dir = await folder(t);
  const file = path.join(dir, '.lock');
  let inside = 0;
  let waits = 0;
  let allWait = () => {};
  const othersWait = new Promise<void>((resolve) => {
    allWait = resolve;
  });
  const work = async () => {
    t.is(++inside, 1);
    await othersWait;
    inside--;
  };
  const onWait = () => {
    waits++;
    if (waits === 3) allWait();
  };
  await Promise.all(Array.from({ length: 4 }, () => withLock(file, work, { onWait })));
  t.is(waits, 3);
  t.deepEqual(await readdir(dir), []);
});

test('failing work releases the lock', async (t) => {
  const file = path.join(await folder(t), '.lock');
  const failing = withLock(file, () => Promise.reject(new Error('no')), { onWait: () => {} });
  await t.throwsAsync(failing, { message: 'no' });
  t.is(await take(file), 'taken');
});

/** Holds the lock of its argument for as long as it lives, and says when it has it. */
const holder = `const { withLock } = await import(${JSON.stringify(new URL('../../src/models/lock.js', import.meta.url).href)});
  await withLock(process.argv[1], () => new Promise((resolve) => {
    console.log('held');
    setInterval(resolve, 600_000);
  }), { onWait() {} });`;

test('the lock of a live process is waited for, and is free as soon as that is killed', async (t) => {
  const dir = await folder(t);
  const file = path.join(dir, '.lock');
  const child = spawn(process.execPath, ['--input-type=module', '-e', holder, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  t.is(await take(file), 'held');
  child.kill('SIGKILL');
  await once(child, 'close');
  t.deepEqual(await readdir(dir), ['.lock']);
  t.is(await take(file), 'taken');
  t.deepEqual(await readdir(dir), []);
});

test('a folder that cannot be written is an error of the system', async (t) => {
  const file = path.join(await folder(t), 'missing', '.lock');
  await t.throwsAsync(
    withLock(file, async () => {}, { onWait: () => {} }),
    { code: 'ENOENT' },
  );
});
