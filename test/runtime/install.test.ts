import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { zipSync } from 'fflate';
import { RuntimeError } from '../../src/runtime/error.ts';
import { type InstallOptions, installRuntime, removeRuntime } from '../../src/runtime/install.ts';
import { findRuntime, runtimeFolder } from '../../src/runtime/installed.ts';
import { cudaRuntime, type RuntimePackages, type Wheel } from '../../src/runtime/packages.ts';
import { findPip, pipFailure } from '../../src/runtime/pip.ts';
import { unless } from '../fixtures/leftOut.ts';

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

interface MadeWheel {
  readonly wheel: Wheel;
  readonly file: string;
  readonly bytes: Uint8Array;
}

/** A wheel with one library, a module and its metadata. */
function makeWheel(name: string, library: string): MadeWheel {
  const version = '1.2.3';
  const stem = name.replaceAll('-', '_');
  const text = (value: string) => Buffer.from(value);
  const bytes = zipSync({
    [library]: text(`the library of ${name}`.repeat(100)),
    [`${path.posix.dirname(library)}/module.py`]: text('raise SystemExit'),
    [`${stem}-${version}.dist-info/METADATA`]: text(
      `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`,
    ),
    [`${stem}-${version}.dist-info/WHEEL`]: text(
      'Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n',
    ),
    [`${stem}-${version}.dist-info/RECORD`]: text(''),
    [`${stem}-${version}.dist-info/licenses/LICENSE`]: text('licence'),
  });
  const wheel = {
    name,
    version,
    sha256: sha256(bytes),
    bytes: bytes.length,
    unpackedBytes: 3000,
    libraries: [library],
  };
  return { wheel, file: `${stem}-${version}-py3-none-any.whl`, bytes };
}

const made = [
  makeWheel('test-cudart', 'nvidia/lib/libcudart.so.13'),
  makeWheel('test-cudnn', 'nvidia/lib/libcudnn.so.9'),
  makeWheel('test-onnxruntime', 'onnxruntime/capi/libonnxruntime.so.1.30.0'),
];

const packages: RuntimePackages = {
  ...cudaRuntime,
  onnxruntime: 'onnxruntime/capi/libonnxruntime.so.1.30.0',
  wheels: made.map(({ wheel }) => wheel),
};

/** An index of wheels on loopback, as pip reads one. */
async function index(
  t: ExecutionContext,
  changed: { readonly only?: readonly string[]; readonly damage?: string } = {},
): Promise<{ readonly environment: Record<string, string>; readonly fetched: string[] }> {
  const fetched: string[] = [];
  const server: Server = createServer((request, response) => {
    const [, kind, name = ''] = (request.url ?? '').split('/');
    if (kind === 'simple') {
      const found = made.filter(({ wheel }) => wheel.name === name && (changed.only?.includes(name) ?? true));
      response.setHeader('content-type', 'text/html');
      response.statusCode = found.length > 0 ? 200 : 404;
      response.end(found.map(({ file }) => `<a href="/files/${file}">${file}</a>`).join(''));
      return;
    }
    const found = made.find(({ file }) => file === name);
    if (found) fetched.push(found.wheel.name);
    response.end(found && (found.wheel.name === changed.damage ? Buffer.from('other bytes') : found.bytes));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const environment = {
    PIP_INDEX_URL: `http://127.0.0.1:${port}/simple`,
    PIP_CONFIG_FILE: '/dev/null',
    PIP_NO_INPUT: '1',
    PIP_RETRIES: '0',
    PIP_TIMEOUT: '5',
    no_proxy: '127.0.0.1',
  };
  return { environment, fetched };
}

async function folder(t: ExecutionContext): Promise<string> {
  const made = await mkdtemp(path.join(os.tmpdir(), 'cutout-runtime-'));
  t.teardown(() => rm(made, { recursive: true, force: true }));
  return made;
}

const options = (
  runtimesDir: string,
  environment: Record<string, string>,
  rest: Partial<InstallOptions> = {},
): InstallOptions => ({
  runtimesDir,
  packages,
  environment,
  platform: 'linux x64',
  onProgress: () => {},
  ...rest,
});

const pip = await findPip({ python: ['python3', 'python'] }).catch(() => undefined);
const withPip = unless(pip ? undefined : 'there is no Python with pip on this machine');

withPip(
  'install: libraries and licences only, found by the engine, and a second install does nothing',
  async (t) => {
    const runtimesDir = await folder(t);
    const { environment, fetched } = await index(t);
    const progress: string[] = [];
    const onProgress: InstallOptions['onProgress'] = ({ phase, bytes = 0, total = 0 }) => {
      t.true(bytes <= total);
      progress.push(phase);
    };
    t.true(await installRuntime(options(runtimesDir, environment, { onProgress })));
    t.deepEqual([...new Set(progress)], ['download', 'unpack']);
    t.deepEqual(fetched, ['test-cudart', 'test-cudnn', 'test-onnxruntime']);
    const found = await findRuntime(runtimesDir);
    t.is(found?.runtimePath, path.join(runtimesDir, 'cuda', 'onnxruntime/capi/libonnxruntime.so.1.30.0'));
    t.deepEqual(
      found?.libraries.map((file) => path.relative(runtimesDir, file)),
      [
        'cuda/nvidia/lib/libcudart.so.13',
        'cuda/nvidia/lib/libcudnn.so.9',
        'cuda/onnxruntime/capi/libonnxruntime.so.1.30.0',
      ],
    );
    const names = found?.record.files.map((file) => file.path) ?? [];
    t.true(names.includes('test_cudnn-1.2.3.dist-info/licenses/LICENSE'));
    t.false(names.some((name) => name.endsWith('.py')));
    t.deepEqual((await readdir(runtimesDir)).sort(), ['cuda']);
    // The versions of this release are others than those of the test.
    t.false(found?.current);
    t.true((await removeRuntime(runtimesDir)) > 0);
    t.is(await findRuntime(runtimesDir), undefined);
    t.is(await removeRuntime(runtimesDir), 0);
  },
);

withPip('install: an interrupted one continues with the wheels that are complete', async (t) => {
  const runtimesDir = await folder(t);
  const first = await index(t, { only: ['test-cudart', 'test-cudnn'] });
  const error = await t.throwsAsync(installRuntime(options(runtimesDir, first.environment)), {
    instanceOf: RuntimeError,
  });
  t.is(error.code, 'runtime_network');
  t.regex(error.message, /test-onnxruntime 1\.2\.3.*pip config list/);
  t.is(await findRuntime(runtimesDir), undefined);
  const second = await index(t);
  t.true(await installRuntime(options(runtimesDir, second.environment)));
  t.deepEqual(second.fetched, ['test-onnxruntime']);
});

withPip('install: a wheel with another digest is refused and not kept', async (t) => {
  const runtimesDir = await folder(t);
  const { environment } = await index(t, { damage: 'test-cudnn' });
  const error = await t.throwsAsync(installRuntime(options(runtimesDir, environment)), {
    instanceOf: RuntimeError,
  });
  t.is(error.code, 'runtime_digest');
  t.regex(error.message, /test-cudnn 1\.2\.3.*another digest/);
  const downloads = await readdir(path.join(runtimesDir, '.downloads'));
  t.deepEqual(
    downloads.filter((name) => name.endsWith('.whl')),
    [made[0]?.file],
  );
});

withPip('install: a registry that does not answer is a sentence about the network', async (t) => {
  const runtimesDir = await folder(t);
  const { environment } = await index(t);
  const nowhere = { ...environment, PIP_INDEX_URL: 'http://127.0.0.1:9/simple' };
  const error = await t.throwsAsync(installRuntime(options(runtimesDir, nowhere)), {
    instanceOf: RuntimeError,
  });
  t.is(error.code, 'runtime_network');
});

withPip('install: stops with the reason of its signal', async (t) => {
  const runtimesDir = await folder(t);
  const { environment } = await index(t);
  const stop = new AbortController();
  const reason = new Error('enough');
  const onProgress = () => stop.abort(reason);
  const error = await t.throwsAsync(
    installRuntime(options(runtimesDir, environment, { signal: stop.signal, onProgress })),
  );
  t.is(error, reason);
  t.is(await findRuntime(runtimesDir), undefined);
});

withPip('install: too little space is refused before anything is fetched', async (t) => {
  const runtimesDir = await folder(t);
  const { environment, fetched } = await index(t);
  const error = await t.throwsAsync(
    installRuntime(options(runtimesDir, environment, { freeBytes: async () => 1e6 })),
    { instanceOf: RuntimeError },
  );
  t.is(error.code, 'runtime_space');
  t.regex(error.message, /needs 0\.2 GB .* there are 0\.0 GB.*CUTOUT_RUNTIMES_DIR/);
  t.deepEqual(fetched, []);
});

test('install: without Python or pip, on another platform', async (t) => {
  const runtimesDir = await folder(t);
  const without = await t.throwsAsync(
    installRuntime(options(runtimesDir, {}, { python: ['/nothing/python3'] })),
    { instanceOf: RuntimeError },
  );
  t.is(without.code, 'runtime_pip');
  t.regex(without.message, /Python 3 was not found.*apt install python3-pip/);
  const stub = path.join(runtimesDir, 'python3');
  await writeFile(stub, '#!/bin/sh\necho "No module named pip" >&2\nexit 1\n', { mode: 0o755 });
  const noPip = await t.throwsAsync(installRuntime(options(runtimesDir, {}, { python: [stub] })), {
    instanceOf: RuntimeError,
  });
  t.is(noPip.code, 'runtime_pip');
  t.regex(noPip.message, /has no pip/);
  const other = await t.throwsAsync(installRuntime(options(runtimesDir, {}, { platform: 'linux arm64' })), {
    instanceOf: RuntimeError,
  });
  t.is(other.code, 'runtime_platform');
});

test('a stand-in for pip is called with pinned version, digest, platform and temporary folder', async (t) => {
  const runtimesDir = await folder(t);
  const log = path.join(runtimesDir, 'calls');
  const stub = path.join(runtimesDir, 'python3');
  await writeFile(
    stub,
    `#!/bin/sh
if [ "$3" = --version ]; then echo "pip 25.1 from here (python 3.12)"; exit 0; fi
for last; do :; done
{ echo "$*"; echo "TMPDIR=$TMPDIR"; cat "$last"; } >> '${log}'
echo "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device" >&2
exit 1
`,
    { mode: 0o755 },
  );
  const error = await t.throwsAsync(installRuntime(options(runtimesDir, {}, { python: [stub] })), {
    instanceOf: RuntimeError,
  });
  t.is(error.code, 'runtime_space');
  const call = await readFile(log, 'utf8');
  for (const part of [
    '--no-deps',
    '--require-hashes',
    '--only-binary :all:',
    '--python-version 3.12',
    '--no-cache-dir',
  ])
    t.true(call.includes(part), part);
  t.true(call.includes('--platform manylinux_2_28_x86_64'));
  t.true(call.includes('--resume-retries'));
  t.regex(call, /^TMPDIR=.*\.downloads\/arriving$/m);
  t.true(call.includes(`test-cudart==1.2.3 --hash=sha256:${made[0]?.wheel.sha256}`));
});

test('findRuntime: missing and short files are damage, with the remedy', async (t) => {
  const runtimesDir = await folder(t);
  t.is(await findRuntime(runtimesDir), undefined);
  const place = runtimeFolder(runtimesDir);
  await mkdir(place);
  const library = path.join(place, 'libonnxruntime.so.1.30.0');
  await writeFile(library, 'library');
  const record = {
    name: 'cuda',
    onnxruntime: 'libonnxruntime.so.1.30.0',
    libraries: [],
    wheels: cudaRuntime.wheels.map(({ name, version, sha256: digest }) => ({
      name,
      version,
      sha256: digest,
    })),
    files: [{ path: 'libonnxruntime.so.1.30.0', bytes: 7 }],
  };
  await writeFile(path.join(place, 'runtime.json'), JSON.stringify(record));
  t.like(await findRuntime(runtimesDir), { current: true, bytes: 7, runtimePath: library });
  await truncate(library, 3);
  await t.throwsAsync(findRuntime(runtimesDir), { message: /is cut short.*cutout runtime install cuda/ });
  await rm(library);
  await t.throwsAsync(findRuntime(runtimesDir), { message: /is missing/ });
  await writeFile(path.join(place, 'runtime.json'), '{');
  const error = await t.throwsAsync(findRuntime(runtimesDir), { instanceOf: RuntimeError });
  t.is(error.code, 'runtime_damaged');
});

for (const [output, code] of [
  ['ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.', 'runtime_digest'],
  ['ERROR: Could not install: [Errno 28] No space left on device', 'runtime_space'],
  [
    "WARNING: Retrying after connection broken by 'NewConnectionError(…)': /simple\nERROR: No matching distribution found for a==1",
    'runtime_network',
  ],
  [
    'ERROR: Could not find a version that satisfies the requirement a==1 (from versions: none)',
    'runtime_network',
  ],
  ['Usage: pip download\nno such option: --platform', 'runtime_pip'],
  ['', 'runtime_pip'],
] as const) {
  test(`what pip says is ${code}: ${output.slice(0, 60)}`, (t) => {
    const error = pipFailure('a 1', output);
    t.is(error.code, code);
    t.regex(error.message, /^pip could not fetch a 1: \S/);
    t.false(error.message.includes('\n'));
  });
}

test('every wheel of the runtime is pinned by a digest', (t) => {
  const { wheels, onnxruntime } = cudaRuntime;
  t.deepEqual(
    wheels.filter(({ sha256: digest, version }) => !/^[0-9a-f]{64}$/.test(digest) || !/^\d/.test(version)),
    [],
  );
  t.is(new Set(wheels.map(({ sha256: digest }) => digest)).size, wheels.length);
  t.is(wheels.find(({ name }) => name === 'onnxruntime-gpu')?.version, onnxruntime.split('.so.')[1]);
});
