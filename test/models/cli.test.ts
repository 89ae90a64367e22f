import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { published, READY, readPrepared, sha256, type Workplace, workplace } from '../fixtures/networks.ts';

const child = fileURLToPath(new URL('./cliChild.js', import.meta.url));

interface Run {
  readonly status: number;
  readonly out: string;
  readonly errors: string;
}

const run = (
  { modelsDir, catalogueDir }: Workplace,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Run> =>
  new Promise((resolve) => {
    const options = { env: { ...process.env, ...env } };
    execFile(process.execPath, [child, modelsDir, catalogueDir, ...args], options, (error, out, errors) =>
      resolve({ status: error ? Number(error.code) : 0, out, errors }),
    );
  });

const cli = (place: Workplace, ...args: string[]): Promise<Run> => run(place, args);

test('list, pull, prepare and remove one network', async (t) => {
  const place = await workplace(t);
  await place.entry({ kind: 'file', path: 'published.onnx' });
  const listed = async () => (await cli(place, 'list')).out.split('\n')[1]?.replace(/ +/g, ' ');

  t.is(await listed(), '* tiny AGPL-3.0! 0.0 – – absent');
  const pull = await cli(place, 'pull');
  t.is(pull.status, 0, pull.errors);
  t.regex(pull.out, /^The weights of tiny are under AGPL-3\.0\. A note\./);
  t.regex(pull.out, /tiny is ready: 0\.0 MB, fp32, any batch size, about 0 MB of memory\.\n$/);
  t.regex((await listed()) ?? '', / ready$/);

  const prepared = path.join(place.modelsDir, 'tiny', 'prepared.onnx');
  const bytes = await readFile(prepared);
  await writeFile(prepared, 'junk');
  t.is((await cli(place, 'prepare', 'tiny')).status, 0);
  t.deepEqual(await readFile(prepared), bytes);

  t.regex((await cli(place, 'remove', 'tiny')).out, /^tiny was removed/);
  t.regex((await cli(place, 'remove', 'tiny')).out, /^tiny was not in/);
  t.regex((await listed()) ?? '', / absent$/);
  t.deepEqual(await place.files(), []);
});

test('the second network is marked in the list, and pulled with the first one', async (t) => {
  const place = await workplace(t);
  await place.entry({ kind: 'file', path: 'published.onnx' });
  await place.entry({ kind: 'file', path: 'published.onnx' }, undefined, { name: 'other' });
  const second = { CUTOUT_TEST_SECOND: 'other' };
  const listed = async () => (await run(place, ['list'], second)).out.split('\n').slice(1, 3);
  t.deepEqual(
    (await listed()).map((line) => line.slice(0, 7)),
    ['+ other', '* tiny '],
  );
  const { status, out, errors } = await run(place, ['pull'], second);
  t.is(status, 0, errors);
  t.regex(out, /tiny is ready: /);
  t.regex(out, /other is ready: /);
  for (const line of await listed()) t.regex(line, / ready$/);
});

test('a wrong checksum is reported with both checksums and a failing exit status', async (t) => {
  const place = await workplace(t);
  const { folder } = await place.entry({ kind: 'file', path: 'published.onnx' });
  const other = Buffer.from(published);
  other[100] = (other[100] ?? 0) ^ 1;
  await writeFile(path.join(folder, 'published.onnx'), other);
  const { status, errors } = await cli(place, 'pull', 'tiny');
  t.is(status, 1);
  t.is(
    errors,
    `The download of tiny has sha256 ${sha256(other)}, expected ${sha256(published)}; it was deleted.\n`,
  );
  t.deepEqual(await place.files(), []);
});

test('an unknown network is reported with the known ones', async (t) => {
  const place = await workplace(t);
  await place.entry({ kind: 'file', path: 'published.onnx' });
  const { status, errors } = await cli(place, 'pull', 'huge');
  t.is(status, 1);
  t.is(
    errors,
    'There is no network named "huge"; there are tiny. Another one is added from its ONNX file: `cutout models add FILE`.\n',
  );
});

/** Starts a pull whose source, a named pipe, delivers half of the file and waits. */
async function pullHalf(place: Workplace) {
  const pipe = path.join(place.catalogueDir, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const pull = spawn(process.execPath, [child, place.modelsDir, place.catalogueDir, 'pull', '--from', pipe]);
  const closed = once(pull, 'close');
  const writer = await open(pipe, 'w');
  const half = published.length >> 1;
  await writer.write(published.subarray(0, half));
  const part = path.join(place.modelsDir, 'tiny', '.pull-part');
  while ((await stat(part).catch(() => ({ size: 0 }))).size < half) await sleep(10);
  return { pull, closed, writer };
}

test('a pull stopped half-way says so, and the next one continues it', async (t) => {
  const place = await workplace(t);
  await place.entry({ kind: 'file', path: 'published.onnx' });
  const { pull, closed, writer } = await pullHalf(place);
  const errors = text(pull.stderr);
  pull.kill('SIGINT');
  // The read that is under way ends with the pipe.
  await sleep(500);
  await writer.close();
  t.deepEqual(await closed, [1, null]);
  t.is(await errors, 'Stopped: tiny is not complete. Run `cutout models pull tiny` to continue.\n');
  t.deepEqual(await place.files(), ['.pull-part', '.pull-part.json']);
  const again = await cli(place, 'pull');
  t.is(again.status, 0, again.errors);
  t.deepEqual(await place.files(), READY);
});

test('removing what an interrupted pull left removes its empty folder', async (t) => {
  const place = await workplace(t);
  await place.entry({ kind: 'file', path: 'published.onnx' });
  await mkdir(path.join(place.modelsDir, 'tiny'), { recursive: true });
  t.is((await cli(place, 'remove', 'tiny')).status, 0);
  t.deepEqual(await readdir(place.modelsDir), []);
});

test('a pull killed half-way leaves nothing that counts as a network, and the next one succeeds', async (t) => {
  const place = await workplace(t);
  await place.entry({ kind: 'file', path: 'published.onnx' });
  const { pull, closed, writer } = await pullHalf(place);
  pull.kill('SIGKILL');
  await closed;
  await writer.close();

  t.deepEqual(await place.files(), ['.lock', '.pull-part', '.pull-part.json']);
  t.regex((await cli(place, 'list')).out.split('\n')[1] ?? '', / absent$/);

  const again = await cli(place, 'pull');
  t.is(again.status, 0, again.errors);
  t.deepEqual(await place.files(), READY);
  t.deepEqual(await readFile(path.join(place.modelsDir, 'tiny', 'source.onnx')), Buffer.from(published));
});

test('a pull killed at any moment can be repeated', async (t) => {
  const place = await workplace(t);
  await place.entry({ kind: 'file', path: 'published.onnx' });
  const reference = await cli(place, 'pull');
  t.is(reference.status, 0, reference.errors);
  const prepared = await readPrepared(place.modelsDir);
  for (const phase of ['.lock', '.pull-part', 'source.onnx', 'prepared.onnx']) {
    await cli(place, 'remove', 'tiny');
    const pull = spawn(process.execPath, [child, place.modelsDir, place.catalogueDir, 'pull']);
    const closed = once(pull, 'close');
    const seen = path.join(place.modelsDir, 'tiny', phase);
    while (pull.exitCode === null && !(await stat(seen).catch(() => undefined))) await sleep(1);
    pull.kill('SIGKILL');
    await closed;
    const again = await cli(place, 'pull');
    t.is(again.status, 0, `${phase}: ${again.errors}`);
    t.deepEqual(await place.files(), READY, phase);
    t.deepEqual(await readPrepared(place.modelsDir), prepared, phase);
  }
});

test('two concurrent pulls do the work once', async (t) => {
  const place = await workplace(t);
  await place.entry({ kind: 'file', path: 'published.onnx' });
  const runs = await Promise.all([cli(place, 'pull'), cli(place, 'pull'), cli(place, 'pull')]);
  t.deepEqual(
    runs.map(({ status }) => status),
    [0, 0, 0],
  );
  t.is(runs.filter(({ out }) => out.includes('The weights of tiny')).length, 1);
  t.deepEqual(await place.files(), READY);
});

test('prepare --device runs the network on the GPU, fails where that fails, and takes no precision', async (t) => {
  const place = await workplace(t);
  await place.entry({ kind: 'file', path: 'published.onnx' });
  t.is((await cli(place, 'pull')).status, 0);
  const prepared = await cli(place, 'prepare', 'tiny', '--device', 'tensorrt');
  t.is(prepared.status, 1);
  t.notRegex(prepared.out, /is ready/);
  t.is(prepared.errors, 'An engine of tiny is built on tensorrt.\n');
  const cuda = await cli(place, 'prepare', 'tiny', '--device', 'cuda');
  t.deepEqual([cuda.status, cuda.errors], [1, 'An engine of tiny is built on cuda.\n']);
  const cpu = await cli(place, 'prepare', 'tiny', '--device', 'cpu');
  t.is(cpu.status, 0);
  t.regex(cpu.out, /tiny is ready: 0\.0 MB/);
  const both = await cli(place, 'prepare', 'tiny', '--device', 'tensorrt', '--precision', 'int8');
  t.not(both.status, 0);
  t.regex(both.errors, /--device.*cannot be used with.*--precision/);
  const unknown = await cli(place, 'prepare', 'tiny', '--device', 'tpu');
  t.regex(unknown.errors, /Allowed choices are cpu, cuda, tensorrt/);
});
