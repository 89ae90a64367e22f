import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'ava';
import { makeArchive } from '../../scripts/package/archive.js';
import { needsOf, tooNew } from '../../scripts/package/elf.js';
import { closureOf } from '../../scripts/package/packages.js';
import { stageBinaries } from '../../scripts/package/stage.js';
import { addon, kernelsForGpu } from '../../scripts/setup/native.js';
import { inBuild, inRoot } from '../../scripts/setup/paths.js';
import { minGlibc } from '../../scripts/setup/requirements.js';
import { watchStarted } from '../../scripts/startedServer.js';

const { unless } = await import('../../build/ts/test/fixtures/leftOut.js');

const platform = { os: 'linux', cpu: process.arch };
const models = process.env.CUTOUT_TEST_MODELS ?? inRoot('data', 'models');
const pulled = existsSync(path.join(models, 'isnet'));
const { version, dependencies } = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'));

const bundled = Object.keys(dependencies).filter((name) => name !== 'onnxruntime-node');

/** One archive of this machine's build for all tests, quickly compressed. */
const folder = mkdtempSync(path.join(tmpdir(), 'cutout-package-'));
const archive = path.join(folder, `cutout-${version}.tgz`);
test.before(async () => {
  mkdirSync(inBuild('package'), { recursive: true });
  writeFileSync(kernels, 'kernels for a GPU');
  await makeArchive(archive, { addons: new Map([[platform, addon('cutout')]]), kernels, level: 1 });
});
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

/** Stands for libcutout_cuda.so, which not every machine can build. */
const kernels = path.join(folder, 'kernels.so');

const binaries = `package/app/build/binaries/linux-${process.arch}`;

test('the archive has what an installed Cutout needs, and nothing of the tests, benches and tools', (t) => {
  const files = execFileSync('tar', ['-tzf', archive], { encoding: 'utf8', maxBuffer: 1e8 }).split('\n');
  const own = files.filter((file) => !file.startsWith('package/app/node_modules/') && !file.endsWith('/'));
  const inApp = [
    ...['package.json', 'bin/cutout.js', 'build/commit'],
    ...['build/ts/src/main.js', 'build/web/index.html'],
    ...['build/ts/src/image/heif/heicWorker.js', 'build/ts/src/models/prepareWorker.js'],
    'build/ts/src/server/deviceTrial.js',
    ...[
      'build/web/console.html',
      'models/isnet/model.json',
      'models/isnet/int8.json',
      'models/types/head.json',
    ],
    ...[
      'scripts/setup/process.js',
      'scripts/setup/requirements.js',
      'scripts/setup/cuda.txt',
      'scripts/setup/tensorrt.txt',
      'node_modules/koa/package.json',
    ],
  ].map((file) => `package/app/${file}`);
  const papers = ['package.json', 'LICENSE', 'README.md', 'CHANGELOG.md'].map((file) => `package/${file}`);
  const needed = [...papers, ...inApp];
  // The engine finds the kernels for a GPU beside the addon (test/gpu/gpu.test.ts).
  const beside = ['libonnxruntime.so.1', 'LICENSE.onnxruntime', 'libcutout_cuda.so', 'NOTICE.cuda'];
  for (const name of ['cutout.node', ...beside]) needed.push(`${binaries}/${name}`);
  for (const file of needed) t.true(files.includes(file), file);
  const unneeded =
    /^package\/app\/(test|bench|tools|deploy|docs|native|binding|web|src|data|scripts\/(?!setup\/(process\.js|requirements\.js|(cuda|tensorrt)\.txt)$)|build\/(?!binaries|commit|ts\/src\/|web\/))|\.(ts|tsx|cc|h|map)$|cutout_(test|faults)/;
  t.deepEqual(
    own.filter((file) => unneeded.test(file)),
    [],
  );
  // What npm reads says nothing that it would have to find, and nothing lies where it looks for packages.
  t.deepEqual(
    own.filter((file) => file && !file.startsWith('package/app/')),
    papers.toSorted(),
  );
  t.false(files.some((file) => file.startsWith('package/node_modules/')));
  const manifest = execFileSync('tar', ['-xzOf', archive, 'package/package.json'], { encoding: 'utf8' });
  t.notRegex(manifest, /ependencies/);
  // Of packages: nothing for tests or compilation, no other system's binaries.
  const packages = files.filter((file) => file.startsWith('package/app/node_modules/'));
  t.deepEqual(
    packages.filter((file) => /node_modules\/(ava|typescript|vite|onnxruntime-\w+|cmake-js)\//.test(file)),
    [],
  );
  // npm's time grows with the number of files.
  t.deepEqual(
    packages.filter((file) => /\.([mc]?ts|yml|map)$|(?<!licen[cs]e)\.md$/i.test(file)),
    [],
  );
  t.true(packages.some((file) => /licen[cs]e\.md$/i.test(file)));
  const libraries = packages.filter((file) => /\.(node|so|dylib|dll)(\.[\d.]+)?$/.test(file));
  t.is(libraries.length, 3, libraries.join());
  for (const file of libraries) t.regex(file, new RegExp(`linux-${process.arch}`));
});

test('without kernels for a GPU there is neither the library nor its notice; another platform has none', (t) => {
  const other = { os: 'linux', cpu: process.arch === 'x64' ? 'arm64' : 'x64' };
  const carried = (of, file) => {
    const target = mkdtempSync(path.join(folder, 'binaries-'));
    stageBinaries(target, new Map([[of, addon('cutout')]]), file);
    return readdirSync(path.join(target, `linux-${of.cpu}`)).filter((name) => /cuda/.test(name));
  };
  t.deepEqual(carried(platform, undefined), []);
  t.deepEqual(carried(platform, kernels), ['NOTICE.cuda', 'libcutout_cuda.so']);
  t.deepEqual(carried(other, kernels), []);
});

const built = kernelsForGpu();
unless(built && existsSync(built) ? undefined : 'nvcc of CUDA 13')(
  'the kernels for a GPU run on the oldest supported C library and need no library of CUDA',
  (t) => {
    t.deepEqual(tooNew(built, minGlibc), []);
    t.deepEqual(
      needsOf(built)?.libraries.filter(
        (name) => !/^(libstdc\+\+|libgcc_s|libc|ld-linux-x86-64)\.so/.test(name),
      ),
      [],
    );
    t.true(statSync(built).size < 20e6);
  },
);

test("the packages are the lockfile's, for one system or both", (t) => {
  const places = (...cpus) =>
    closureOf(
      bundled,
      cpus.map((cpu) => ({ os: 'linux', cpu })),
    ).map(({ place }) => place);
  const sharp = (cpu) => [
    `node_modules/@img/sharp-libvips-linux-${cpu}`,
    `node_modules/@img/sharp-linux-${cpu}`,
  ];
  const native = (all) => all.filter((place) => /@img\/sharp-/.test(place));
  t.deepEqual(native(places('x64')), sharp('x64'));
  t.deepEqual(native(places('arm64')), sharp('arm64'));
  t.deepEqual(native(places('x64', 'arm64')), [...sharp('arm64'), ...sharp('x64')].sort());
  for (const name of bundled) t.true(places('x64').includes(`node_modules/${name}`), name);
});

test('every binary runs on the oldest supported C library; the addon needs no C++ library of the system', (t) => {
  const own = needsOf(addon('cutout'));
  t.is(own?.cpu, process.arch);
  t.true(own.libraries.includes('libc.so.6'));
  t.deepEqual(
    own.libraries.filter((name) => name.startsWith('libstdc++')),
    [],
  );
  t.deepEqual(tooNew(addon('cutout'), minGlibc), []);
  const libraries = (place) =>
    readdirSync(inRoot(place), { recursive: true })
      .filter((name) => /\.(node|so)(\.[\d.]+)?$/.test(name))
      .map((name) => path.join(inRoot(place), name));
  const others = [
    inRoot('node_modules/onnxruntime-node/bin/napi-v6/linux', process.arch, 'libonnxruntime.so.1'),
    inRoot('node_modules/better-sqlite3/prebuilds', `linux-${process.arch}.node`),
    ...libraries(`node_modules/@img/sharp-linux-${process.arch}`),
    ...libraries(`node_modules/@img/sharp-libvips-linux-${process.arch}`),
  ];
  t.true(others.length >= 4);
  for (const file of others) t.deepEqual(tooNew(file, minGlibc), [], file);
  // The floor is not higher than necessary, and a newer need would be found.
  t.true(others.some((file) => tooNew(file, [minGlibc[0], minGlibc[1] - 1]).length > 0));
  t.is(needsOf(inRoot('package.json')), undefined);
});

/** Programs that npm and Cutout start, and no others: no compiler, CMake, Python, git. */
function bareTools() {
  const tools = path.join(folder, 'bin');
  mkdirSync(tools);
  symlinkSync(process.execPath, path.join(tools, 'node'));
  const npm = path.dirname(
    process.env.npm_execpath ??
      execFileSync('sh', ['-c', 'readlink -f "$(command -v npm)"'], { encoding: 'utf8' }),
  );
  for (const name of ['npm', 'npx']) symlinkSync(path.join(npm, `${name}-cli.js`), path.join(tools, name));
  symlinkSync('/bin/sh', path.join(tools, 'sh'));
  symlinkSync('/usr/bin/env', path.join(tools, 'env'));
  return tools;
}

/** As npm does, in less time. */
function unpack(app) {
  const place = path.join(app, 'node_modules', 'cutout');
  mkdirSync(place, { recursive: true });
  execFileSync('tar', ['-xzf', archive, '-C', place, '--strip-components=1']);
  const links = path.join(app, 'node_modules', '.bin');
  mkdirSync(links);
  symlinkSync('../cutout/app/bin/cutout.js', path.join(links, 'cutout'));
  chmodSync(path.join(place, 'app', 'bin', 'cutout.js'), 0o755);
}

test('the installed archive serves and cuts out an image, without compiler and registry', async (t) => {
  const app = path.join(folder, 'app');
  mkdirSync(app);
  const env = {
    PATH: bareTools(),
    HOME: folder,
    npm_config_cache: path.join(folder, 'npm'),
    npm_config_registry: 'http://127.0.0.1:1/',
    npm_config_update_notifier: 'false',
    CUTOUT_PORT: '0',
    CUTOUT_DATA_DIR: path.join(folder, 'data'),
    CUTOUT_MODELS_DIR: models,
    CUTOUT_SUBJECT_TYPES: 'off',
    CUTOUT_API_KEY: 'key-of-the-package-test',
  };
  const run = (...[program, ...args]) => spawnSync(program, args, { cwd: app, env, encoding: 'utf8' });
  if (process.env.CUTOUT_TEST_LONG === '1') {
    const installed = run('npm', 'install', '--no-audit', '--no-fund', archive);
    t.is(installed.status, 0, installed.stderr);
  } else {
    t.log('short: unpacked; installed by npm with CUTOUT_TEST_LONG=1');
    unpack(app);
  }
  const cutout = path.join(app, 'node_modules', '.bin', 'cutout');
  // No package misses a file that it loads.
  const place = path.join(app, 'node_modules', 'cutout', 'app');
  const script = `const bundled = ${JSON.stringify(bundled)};
    await Promise.all(bundled.map((name) => import(name)));`;
  writeFileSync(path.join(place, 'importAll.mjs'), script);
  t.is(run('node', path.join(place, 'importAll.mjs')).stderr, '');
  t.false(existsSync(path.join(app, 'node_modules', 'onnxruntime-node')));

  t.regex(run(cutout, '--version').stdout, new RegExp(`^${version} \\([0-9a-f]{12}(-dirty)?\\)\n$`));
  const doctor = run(cutout, 'doctor').stdout;
  t.regex(doctor, /^Pixel loops +\w/m, 'what the addon says');
  t.notRegex(doctor, /npm run|npm start|compiler|not built/);
  t.true(
    doctor.includes(path.join(app, 'node_modules/cutout/app/build/binaries', `linux-${process.arch}`)),
    doctor,
  );
  if (!pulled) return t.log(`not served: no network in ${models}`);

  const server = spawn(cutout, ['serve', '--no-pull'], { cwd: app, env });
  const started = watchStarted(server);
  t.teardown(async () => {
    server.kill('SIGKILL');
    await started.ended;
  });
  const url = await started.url;
  // The settings that only a new process can take.
  t.notRegex(started.output(), /unbounded/);
  const form = new FormData();
  form.append('image_file', new Blob([readFileSync(inRoot('docs/images/playground-light.webp'))]));
  const answer = await fetch(`${url}/v1.0/removebg`, {
    method: 'POST',
    headers: { 'X-Api-Key': env.CUTOUT_API_KEY },
    body: form,
  });
  t.is(answer.status, 200);
  t.is(answer.headers.get('content-type'), 'image/png');
  t.is((await fetch(`${url}/`)).status, 200);
  server.kill('SIGTERM');
  t.is(await started.ended, 0);
});
