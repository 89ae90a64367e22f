import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import test, { type ExecutionContext } from 'ava';
import { zipSync } from 'fflate';
import { runtimeCommand } from '../../src/cli/runtime.ts';
import { UserError } from '../../src/errors.ts';
import {
  findRuntime,
  type RuntimeName,
  requirementsFile,
  runtimeFolder,
} from '../../src/runtime/installed.ts';
import { unless } from '../fixtures/leftOut.ts';

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

interface MadeWheel {
  readonly name: string;
  readonly requirement: string;
  readonly file: string;
  readonly bytes: Uint8Array;
}

/** A wheel with libraries, a module and its metadata. */
function makeWheel(name: string, ...libraries: string[]): MadeWheel {
  const version = '1.2.3';
  const stem = name.replaceAll('-', '_');
  const text = (value: string) => Buffer.from(value);
  const bytes = zipSync({
    ...Object.fromEntries(libraries.map((library) => [library, text(`the library of ${name}`.repeat(100))])),
    [`${path.posix.dirname(libraries[0] ?? '')}/module.py`]: text('raise SystemExit'),
    [`${stem}-${version}.dist-info/METADATA`]: text(
      `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`,
    ),
    [`${stem}-${version}.dist-info/WHEEL`]: text(
      'Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n',
    ),
    [`${stem}-${version}.dist-info/RECORD`]: text(''),
    [`${stem}-${version}.dist-info/licenses/LICENSE`]: text('licence'),
  });
  const requirement = `${name}==${version} --hash=sha256:${sha256(bytes)}\n`;
  return { name, requirement, file: `${stem}-${version}-py3-none-any.whl`, bytes };
}

const made = [
  makeWheel(
    'test-cuda',
    ...[
      'cudart.so.13',
      'nvrtc-builtins.so.13.0',
      'nvrtc.so.13',
      'cublasLt.so.13',
      'cublas.so.13',
      'curand.so.10',
    ].map((name) => `nvidia/cu13/lib/lib${name}`),
  ),
  makeWheel('test-cudnn', 'nvidia/cudnn/lib/libcudnn.so.9'),
  makeWheel('test-onnxruntime', 'onnxruntime/capi/libonnxruntime.so.1.30.0'),
];

/** An index of wheels on loopback, as pip reads one. */
async function index(
  t: ExecutionContext,
  changed: { readonly only?: readonly string[]; readonly damage?: string } = {},
): Promise<string[]> {
  const fetched: string[] = [];
  const server: Server = createServer((request, response) => {
    const [, kind, name = ''] = (request.url ?? '').split('/');
    if (kind === 'simple') {
      const found = made.filter((wheel) => wheel.name === name && (changed.only?.includes(name) ?? true));
      response.setHeader('content-type', 'text/html');
      response.statusCode = found.length > 0 ? 200 : 404;
      response.end(found.map(({ file }) => `<a href="/files/${file}">${file}</a>`).join(''));
      return;
    }
    const found = made.find(({ file }) => file === name);
    if (found) fetched.push(found.name);
    response.end(found && (found.name === changed.damage ? Buffer.from('other bytes') : found.bytes));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  Object.assign(process.env, {
    PIP_INDEX_URL: `http://127.0.0.1:${port}/simple`,
    PIP_CONFIG_FILE: '/dev/null',
    PIP_NO_INPUT: '1',
    PIP_RETRIES: '0',
    PIP_TIMEOUT: '5',
    PIP_NO_CACHE_DIR: '1',
    no_proxy: '127.0.0.1',
  });
  return fetched;
}

async function folder(t: ExecutionContext): Promise<string> {
  const made = await mkdtemp(path.join(os.tmpdir(), 'cutout-runtime-'));
  t.teardown(() => rm(made, { recursive: true, force: true }));
  return made;
}

interface Ran {
  readonly runtimesDir: string;
  readonly python?: string;
}

/** Runs `cutout runtime …` with the wheels of this file. Resolves with what it printed. */
async function runtime({ runtimesDir, python }: Ran, ...args: string[]): Promise<string> {
  const requirements = path.join(
    await mkdtemp(path.join(os.tmpdir(), 'cutout-runtime-')),
    'requirements.txt',
  );
  await writeFile(requirements, `# Made.\n${made.map(({ requirement }) => requirement).join('')}`);
  const out = new PassThrough();
  try {
    const command = runtimeCommand({ runtimesDir, out, requirements, ...(python && { python }) });
    await command.parseAsync(args, { from: 'user' });
    return String(out.read() ?? '');
  } finally {
    await rm(path.dirname(requirements), { recursive: true });
  }
}

const hasPip = spawnSync('python3', ['-m', 'pip', '--version']).status === 0;
const withPip = unless(hasPip ? undefined : 'there is no Python with pip on this machine', test.serial);

withPip('install: found by the engine, and replaced by the next one', async (t) => {
  const runtimesDir = await folder(t);
  const fetched = await index(t);
  t.is(findRuntime(runtimesDir, 'cuda'), undefined);
  t.regex(await runtime({ runtimesDir }, 'install', 'cuda'), /licences of NVIDIA.*\n.*The runtime is in /);
  t.deepEqual(fetched, ['test-cuda', 'test-cudnn', 'test-onnxruntime']);
  const found = findRuntime(runtimesDir, 'cuda');
  t.is(found?.runtimePath, path.join(runtimesDir, 'cuda', 'onnxruntime/capi/libonnxruntime.so.1.30.0'));
  t.is(found?.libraries[0], path.join(runtimesDir, 'cuda', 'nvidia/cu13/lib/libcudart.so.13'));
  t.is(found?.libraries.length, 7);
  t.deepEqual(await readdir(runtimesDir), ['cuda']);
  await writeFile(path.join(runtimeFolder(runtimesDir, 'cuda'), 'older'), '');
  await runtime({ runtimesDir }, 'install', 'cuda');
  t.false((await readdir(runtimeFolder(runtimesDir, 'cuda'))).includes('older'));
  t.truthy(findRuntime(runtimesDir, 'cuda'));
});

withPip('list and remove', async (t) => {
  const runtimesDir = await folder(t);
  await index(t);
  await runtime({ runtimesDir }, 'install', 'cuda');
  t.is(
    await runtime({ runtimesDir }, 'list'),
    `tensorrt: not installed\ncuda: ${path.join(runtimesDir, 'cuda')}\n`,
  );
  await rm(path.join(runtimesDir, 'cuda', 'onnxruntime/capi/libonnxruntime.so.1.30.0'));
  t.regex(await runtime({ runtimesDir }, 'list'), /cuda: The runtime in .* is damaged: .* is missing\. Run /);
  await runtime({ runtimesDir }, 'remove', 'cuda');
  t.is(findRuntime(runtimesDir, 'cuda'), undefined);
  await t.throwsAsync(runtime({ runtimesDir }, 'remove', 'cuda'), {
    instanceOf: UserError,
    message: /^The runtime cuda is not installed in /,
  });
});

withPip('install: a wheel with another digest is refused, and the runtime that is there stays', async (t) => {
  const runtimesDir = await folder(t);
  await index(t);
  await runtime({ runtimesDir }, 'install', 'cuda');
  await index(t, { damage: 'test-cudnn' });
  await t.throwsAsync(runtime({ runtimesDir }, 'install', 'cuda'), {
    instanceOf: UserError,
    message: /^pip ended with status 1, and nothing was installed/,
  });
  t.truthy(findRuntime(runtimesDir, 'cuda'));
  t.deepEqual(await readdir(runtimesDir), ['cuda']);
});

withPip('install: an incomplete registry installs nothing', async (t) => {
  const runtimesDir = await folder(t);
  await index(t, { only: ['test-cuda', 'test-cudnn'] });
  await t.throwsAsync(runtime({ runtimesDir }, 'install', 'cuda'), { instanceOf: UserError });
  t.deepEqual(await readdir(runtimesDir), []);
});

test('install: without Python', async (t) => {
  const error = await t.throwsAsync(
    runtime({ runtimesDir: await folder(t), python: '/nothing/python3' }, 'install', 'cuda'),
    { instanceOf: UserError },
  );
  t.regex(error.message, /\/nothing\/python3 was not found.*apt install python3-pip/);
});

test('install: a stand-in for pip is called with digests, platform and temporary folder', async (t) => {
  const runtimesDir = await folder(t);
  const log = path.join(await folder(t), 'calls');
  const python = path.join(path.dirname(log), 'python3');
  await writeFile(
    python,
    `#!/bin/sh
for last; do :; done
{ echo "$*"; echo "TMPDIR=$TMPDIR"; cat "$last"; } > '${log}'
exit 1
`,
    { mode: 0o755 },
  );
  await t.throwsAsync(runtime({ runtimesDir, python }, 'install', 'cuda'), {
    message: /^pip ended with status 1/,
  });
  const call = await readFile(log, 'utf8');
  for (const part of ['--no-deps', '--require-hashes', '--only-binary :all:', '--python-version 3.12'])
    t.true(call.includes(part), part);
  t.true(call.includes('--platform manylinux_2_28_x86_64'));
  t.regex(call, /^TMPDIR=.*\.staging\/temporary$/m);
  t.true(call.includes(made[0]?.requirement ?? '?'));
});

test('findRuntime: a missing library is damage, with the remedy', async (t) => {
  const runtimesDir = await folder(t);
  t.is(findRuntime(runtimesDir, 'cuda'), undefined);
  await mkdir(runtimeFolder(runtimesDir, 'cuda'));
  t.throws(() => findRuntime(runtimesDir, 'cuda'), {
    instanceOf: UserError,
    message: /is damaged: onnxruntime.*is missing.*cutout runtime install cuda/,
  });
});

/** The requirements of a runtime, without comments. */
const requirementsOf = async (name: RuntimeName) =>
  (await readFile(requirementsFile(name), 'utf8')).split('\n').filter((line) => !/^(#|$)/.test(line));

test('every wheel of the runtimes is pinned by a digest', async (t) => {
  for (const [name, count] of Object.entries({ tensorrt: 1, cuda: 6 })) {
    const lines = await requirementsOf(name as RuntimeName);
    t.is(lines.length, count);
    t.deepEqual(
      lines.filter((line) => !/^[\w-]+==[\d.]+ --hash=sha256:[0-9a-f]{64}$/.test(line)),
      [],
    );
  }
  const lines = await requirementsOf('cuda');
  const [version] = lines.flatMap((line) => /^onnxruntime-gpu==(\S+)/.exec(line)?.[1] ?? []);
  const code = await readFile('src/runtime/installed.ts', 'utf8');
  t.true(code.includes(`libonnxruntime.so.${version}'`));
});
