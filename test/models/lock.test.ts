import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { withLock } from '../../src/models/lock.ts';

async function folder(t: ExecutionContext): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'cutout-lock-'));
  t.teardown(() => rm(made, { recursive: true }));
  return made;
}

const owner = (pid: number, host = hostname(), started = '') =>
  JSON.stringify({ token: 'other', host, pid, started });

/** The id of a process that has ended. */
async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'close');
  return child.pid ?? 0;
}

/** Takes the lock and returns whether it had to wait; gives up after 600 ms. */
async function take(file: string): Promise<'taken' | 'waited'> {
  let result: 'taken' | 'waited' = 'taken';
  const signal = AbortSignal.timeout(600);
  const onWait = () => {
    result = 'waited';
  };
  await withLock(file, async () => {}, { signal, onWait }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return result;
}

test('work under one lock is serialised, and the lock is removed', async (t) => {
  const dir = await folder(t);
  const file = path.join(dir, '.lock');
  let inside = 0;
  let waits = 0;
  const work = async () => {
    t.is(++inside, 1);
    await new Promise((resolve) => setTimeout(resolve, 30));
    inside--;
  };
  const onWait = () => {
    waits++;
  };
  await Promise.all(Array.from({ length: 4 }, () => withLock(file, work, { onWait })));
  t.is(waits, 3);
  t.deepEqual(await readdir(dir), []);
});

test('a lock that cannot be written, on a full disk for example, is not left behind', async (t) => {
  const dir = await folder(t);
  const lock = new URL('../../src/models/lock.js', import.meta.url).href;
  const script = `const { withLock } = await import(${JSON.stringify(lock)});
    const [file] = process.argv.slice(1);
    const error = await withLock(file, async () => {}, { onWait() {} }).catch((error) => error);
    process.exitCode = error?.code === 'EFBIG' ? 0 : 1;`;
  // No file may grow; without the signal, writing fails.
  const limited = 'trap "" XFSZ; ulimit -f 0; exec "$@"';
  const node = [process.execPath, '--input-type=module', '-e', script, path.join(dir, '.lock')];
  const child = spawn('sh', ['-c', limited, 'sh', ...node], { stdio: 'inherit' });
  t.deepEqual(await once(child, 'close'), [0, null]);
  t.deepEqual(await readdir(dir), []);
});

test('failing work releases the lock', async (t) => {
  const file = path.join(await folder(t), '.lock');
  const failing = withLock(file, () => Promise.reject(new Error('no')), { onWait: () => {} });
  await t.throwsAsync(failing, { message: 'no' });
  t.is(await take(file), 'taken');
});

test('the lock of a live process is waited for, and is not taken over', async (t) => {
  const file = path.join(await folder(t), '.lock');
  const parent = await readFile(`/proc/${process.ppid}/stat`, 'utf8');
  const started = parent.slice(parent.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  await writeFile(file, owner(process.ppid, hostname(), started));
  t.is(await take(file), 'waited');
  t.is(await readFile(file, 'utf8'), owner(process.ppid, hostname(), started));
});

test('the lock of a dead process is taken over', async (t) => {
  const dir = await folder(t);
  const file = path.join(dir, '.lock');
  await writeFile(file, owner(await deadPid()));
  t.is(await take(file), 'taken');
  t.deepEqual(await readdir(dir), []);
});

test('a lock whose process number belongs to a newer process is taken over', async (t) => {
  const file = path.join(await folder(t), '.lock');
  await writeFile(file, owner(process.ppid, hostname(), '1'));
  t.is(await take(file), 'taken');
});

test('a lock of another host is waited for while it is renewed, and taken over when it is not', async (t) => {
  const file = path.join(await folder(t), '.lock');
  await writeFile(file, owner(1, 'elsewhere'));
  t.is(await take(file), 'waited');
  const longAgo = new Date(Date.now() - 120_000);
  await utimes(file, longAgo, longAgo);
  t.is(await take(file), 'taken');
});

test('a lock without its owner is waited for while that may be being written, and then taken over', async (t) => {
  const file = path.join(await folder(t), '.lock');
  await writeFile(file, '');
  t.is(await take(file), 'waited');
  const before = new Date(Date.now() - 10_000);
  await utimes(file, before, before);
  t.is(await take(file), 'taken');
});

test('many processes that find one dead lock still work one at a time', async (t) => {
  const file = path.join(await folder(t), '.lock');
  await writeFile(file, owner(await deadPid()));
  let inside = 0;
  await Promise.all(
    Array.from({ length: 8 }, () =>
      withLock(
        file,
        async () => {
          t.is(++inside, 1);
          await new Promise((resolve) => setTimeout(resolve, 5));
          inside--;
        },
        { onWait: () => {} },
      ),
    ),
  );
});
