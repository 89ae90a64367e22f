import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'ava';
import { familyOf } from '../../scripts/setup/distribution.js';
import { removeForeignBuild } from '../../scripts/setup/native.js';
import { findNvcc } from '../../scripts/setup/nvcc.js';
import { inRoot } from '../../scripts/setup/paths.js';
import { findJemalloc } from '../../scripts/setup/process.js';
import { packageSentence, systemSentence } from '../../scripts/setup/requirements.js';
import { hashFiles, together } from '../../scripts/setup/step.js';
import { missingSentence } from '../../scripts/setup/toolchain.js';

function temporary(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-setup-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const compiler = { key: 'cxx', what: 'a C++20 compiler' };
const cmake = { key: 'cmake', what: 'CMake' };

test('the first nvcc of CUDA 13 or newer is used, and none is no error', (t) => {
  const folder = temporary(t);
  const nvcc = (name, says, mode = 0o755) => {
    const file = path.join(folder, name);
    writeFileSync(file, `#!/bin/sh\necho '${says}'\n`, { mode });
    return file;
  };
  const old = nvcc('old', 'Cuda compilation tools, release 12.4, V12.4.131');
  const broken = nvcc('broken', 'command not understood');
  const locked = nvcc('locked', 'Cuda compilation tools, release 13.0, V13.0.88', 0o644);
  const good = nvcc('good', 'Cuda compilation tools, release 13.0, V13.0.88');
  const missing = path.join(folder, 'missing');
  t.is(findNvcc({}, [missing, old, broken, locked]), undefined);
  t.is(findNvcc({}, [missing, old, broken, locked, good]), good);
});

test("names the missing packages for the system's package manager, in one sentence", (t) => {
  const debian = missingSentence([compiler, cmake], 'ID=debian\nVERSION_ID="12"\n');
  t.is(
    debian,
    'Missing a C++20 compiler, CMake: install with `apt-get install g++ cmake` and run the command again.',
  );
  t.regex(missingSentence([compiler], 'ID=linuxmint\nID_LIKE="ubuntu debian"\n'), /apt-get install g\+\+`/);
  t.regex(
    missingSentence([compiler], 'ID="rocky"\nID_LIKE="rhel centos fedora"\n'),
    /dnf install gcc-c\+\+`/,
  );
  t.regex(missingSentence([compiler], 'NAME="Arch Linux"\nID=arch\n'), /pacman -S gcc`/);
  t.regex(missingSentence([compiler], 'ID=fedora\nVERSION_ID=43\n'), /dnf install gcc-c\+\+`/);
  t.regex(
    missingSentence([compiler], 'ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n'),
    /zypper install gcc-c\+\+`/,
  );
  t.regex(missingSentence([cmake], 'ID=alpine\n'), /apk add cmake`/);
});

test('says nothing if nothing is missing, and names tools if the system is unknown', (t) => {
  t.is(missingSentence([], 'ID=debian\n'), '');
  t.is(missingSentence([cmake], ''), 'Please install CMake and run the command again.');
  t.is(familyOf('ID=plan9\n'), undefined);
});

test('a step is repeated when a file changes, appears or is renamed', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-step-'));
  writeFileSync(path.join(folder, 'a'), 'one');
  const first = await hashFiles([folder]);
  t.is(await hashFiles([folder]), first);
  writeFileSync(path.join(folder, 'a'), 'two');
  const changed = await hashFiles([folder]);
  t.not(changed, first);
  writeFileSync(path.join(folder, 'b'), '');
  t.not(await hashFiles([folder]), changed);
  t.not(await hashFiles([folder], 'other machine'), await hashFiles([folder]));
  t.not(await hashFiles([path.join(folder, 'missing')]), await hashFiles([path.join(folder, 'b')]));
});

test('parallel steps all end before the first failure is reported', async (t) => {
  const order = [];
  const work = async (name, turns, failure) => {
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
    order.push(name);
    if (failure) throw new Error(failure);
  };
  await t.throwsAsync(together([work('slow', 20), work('first', 5, 'one'), work('second', 10, 'two')]), {
    message: 'one',
  });
  t.deepEqual(order, ['first', 'second', 'slow']);
  await together([work('third', 1)]);
});

test('an unsupported machine is reported in one sentence, before anything is downloaded', (t) => {
  const machine = { platform: 'linux', arch: 'x64', glibc: '2.36' };
  const said = (change) => systemSentence({ ...machine, ...change });
  t.is(said({}), '');
  t.is(said({ arch: 'arm64', glibc: '2.34' }), '');
  t.is(said({ glibc: '3.0' }), '');
  t.regex(said({ glibc: undefined }), /musl .*ONNX Runtime is published for glibc alone/);
  t.regex(said({ glibc: '2.31' }), /glibc 2\.31; 2\.34 or newer/);
  t.regex(said({ platform: 'darwin' }), /runs on Linux; this is darwin/);
  t.regex(said({ arch: 'riscv64' }), /this is riscv64/);
  const packaged = (change) =>
    packageSentence(['linux-x64'], { node: '24.21.0', platform: 'linux', arch: 'x64', ...change });
  t.is(packaged({}), '');
  t.regex(packaged({ node: '20.20.2' }), /needs Node\.js \^22.*; this is 20\.20\.2\.$/);
  t.is(packaged({ arch: 'arm64' }), 'This package of Cutout is for linux-x64; this is linux-arm64.');
  // Each is one line.
  for (const change of [{ glibc: undefined }, { glibc: '2.17' }]) t.false(said(change).includes('\n'));
});

test('jemalloc is found in the folders of every distribution, unless it is for another processor', (t) => {
  const [multiarch, lib64, lib] = [temporary(t), temporary(t), temporary(t)];
  const machines = { x64: 62, arm64: 183 };
  const library = (folder, bits, machine) => {
    const head = Buffer.alloc(64);
    head.write('\x7fELF', 'latin1');
    head[4] = bits === 64 ? 2 : 1;
    head.writeUInt16LE(machine, 18);
    const file = path.join(folder, 'libjemalloc.so.2');
    writeFileSync(file, head);
    return file;
  };
  const folders = [multiarch, lib64, lib];
  t.is(findJemalloc(folders), undefined);
  library(multiarch, 64, 8);
  library(lib64, 32, 3);
  t.is(findJemalloc(folders), undefined);
  const own = library(lib, 64, machines[process.arch]);
  t.is(findJemalloc(folders), own);
  writeFileSync(path.join(lib64, 'libjemalloc.so.2'), '');
  t.is(findJemalloc(folders), own);
});

test('a build folder that was moved is recreated, another one is kept', async (t) => {
  const folder = path.join(temporary(t), 'native');
  const make = (home) => {
    mkdirSync(folder, { recursive: true });
    const cache = `# CMake\nCMAKE_GENERATOR:INTERNAL=Ninja\nCMAKE_HOME_DIRECTORY:INTERNAL=${home}\n`;
    writeFileSync(path.join(folder, 'CMakeCache.txt'), cache);
  };
  make('/place/one');
  await removeForeignBuild(folder, '/place/one/', 'Ninja');
  t.true(existsSync(folder));
  await removeForeignBuild(folder, '/place/two', 'Ninja');
  t.false(existsSync(folder));
  await removeForeignBuild(folder, '/place/two', 'Ninja');
  make('/place/two');
  await removeForeignBuild(folder, '/place/two', 'Unix Makefiles');
  t.false(existsSync(folder));
});

test('no install script of a package runs, whichever npm installs it', (t) => {
  const folder = temporary(t);
  const marker = path.join(folder, 'ran');
  mkdirSync(path.join(folder, 'inner'));
  writeFileSync(
    path.join(folder, 'inner', 'package.json'),
    JSON.stringify({ name: 'inner', version: '1.0.0', scripts: { postinstall: `touch ${marker}` } }),
  );
  writeFileSync(
    path.join(folder, 'package.json'),
    JSON.stringify({ name: 'outer', version: '1.0.0', dependencies: { inner: 'file:./inner' } }),
  );
  const install = () =>
    execFileSync('npm', ['install', '--offline', '--install-links', '--foreground-scripts'], {
      cwd: folder,
      stdio: 'pipe',
    });
  copyFileSync(inRoot('.npmrc'), path.join(folder, '.npmrc'));
  install();
  t.true(existsSync(path.join(folder, 'node_modules', 'inner')));
  t.false(existsSync(marker));
});
