import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'ava';
import { debianSource, parseSources, sourceLine } from '../../scripts/setup/headers/debian.js';
import { fetchHeaders, findHeaders } from '../../scripts/setup/headers/index.js';
import { localHeaders } from '../../scripts/setup/headers/local.js';
import { fetchFromRepository, files, knownRelease } from '../../scripts/setup/headers/repository.js';
import { inRoot } from '../../scripts/setup/paths.js';

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const nothing = () => {};

function temporary(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-headers-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A release of two files, and a host that serves it like the repository. */
const contents = {
  'onnxruntime_c_api.h': '#define ORT_API_VERSION 23\n',
  'onnxruntime_cxx_api.h': '// C++\n',
};
const release = {
  tag: 'v9.9.9',
  sha256: Object.fromEntries(Object.entries(contents).map(([file, text]) => [file, sha256(text)])),
};

async function standIn(t, answers = contents) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const text = answers[path.basename(request.url)];
    response.writeHead(text === undefined ? 404 : 200).end(text);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return { asked, base: `http://127.0.0.1:${server.address().port}/mirror/` };
}

const ubuntu = 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n';
const systems = {
  Ubuntu: [
    ubuntu,
    parseSources(
      'Types: deb\nURIs: http://mirror.example/ubuntu/\nSuites: noble noble-updates\nComponents: main universe\n',
      true,
    ),
  ],
  'Linux Mint': [
    'ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_CODENAME=zara\n',
    parseSources('deb http://mirror.example/mint zara main upstream', false),
  ],
  Fedora: ['NAME="Fedora Linux"\nID=fedora\nVERSION_ID=43\n', []],
  'Arch Linux': ['NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n', []],
  'Debian without package sources': ['ID=debian\nVERSION_CODENAME=trixie\n', []],
};
const debian = [
  'ID=debian\nVERSION_CODENAME=bookworm\n',
  parseSources('deb http://mirror.example/debian bookworm main', false),
];

test("derives the source line from the machine's own Debian source, in both file formats", (t) => {
  const list = parseSources(
    [
      '# deb http://commented.example bookworm main',
      'deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib',
      'deb http://mirror.example/security bookworm-security main',
    ].join('\n'),
    false,
  );
  t.is(sourceLine(list, 'bookworm'), 'deb [signed-by=/k.gpg] http://mirror.example/debian forky main\n');
  const deb822 = parseSources(
    [
      'Types: deb\nURIs: http://other.example/apt\nSuites: nodistro\nComponents: main\n',
      'Types: deb\n# a comment\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n',
    ].join('\n'),
    true,
  );
  t.is(sourceLine(deb822, 'bookworm'), 'deb [signed-by=/k.gpg] http://mirror.example/debian forky main\n');
  t.is(sourceLine(deb822, 'jammy'), undefined);
});

test('only Debian uses its package', (t) => {
  t.is(debianSource(...debian), 'deb http://mirror.example/debian forky main\n');
  for (const [name, [osRelease, entries]] of Object.entries(systems))
    t.is(debianSource(osRelease, entries), undefined, name);
});

/** Programs in place of Debian's: an apt-get that records its call, then does this, and a dpkg-deb that does that. */
function withAptGet(t, aptGet = 'exit 100', dpkgDeb = 'exit 2') {
  const folder = temporary(t);
  const called = path.join(folder, 'called');
  const program = (name, text) =>
    writeFileSync(path.join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  program('apt-get', `echo "$@" >> ${called}\n${aptGet}`);
  program('dpkg-deb', dpkgDeb);
  const before = process.env.PATH;
  process.env.PATH = `${folder}:${before}`;
  t.teardown(() => {
    process.env.PATH = before;
  });
  return () => existsSync(called);
}

for (const [name, [osRelease, entries]] of Object.entries(systems))
  test.serial(`on ${name} the headers come from the repository, and apt-get is not run`, async (t) => {
    const aptGet = withAptGet(t);
    const { base, asked } = await standIn(t);
    const target = path.join(temporary(t), 'headers');
    await fetchHeaders(nothing, { target, osRelease, entries, repository: { base, release } });
    t.false(aptGet());
    t.deepEqual(
      asked,
      Object.keys(contents).map((file) => `GET /mirror/v9.9.9/include/onnxruntime/core/session/${file}`),
    );
    for (const [file, text] of Object.entries(contents))
      t.is(readFileSync(path.join(target, file), 'utf8'), text);
  });

test.serial('on Debian the repository is used if the package is not available', async (t) => {
  const aptGet = withAptGet(t);
  const { base } = await standIn(t);
  const target = path.join(temporary(t), 'headers');
  const [osRelease, entries] = debian;
  await fetchHeaders(nothing, { target, osRelease, entries, repository: { base, release } });
  t.true(aptGet());
  t.deepEqual(readdirSync(target), Object.keys(contents));
});

test.serial('on Debian the repository is used if the package is newer than the library', async (t) => {
  const headers = 'unpacked/usr/include/onnxruntime';
  const unpack = `mkdir -p ${headers}; cd ${headers}; echo '#define ORT_API_VERSION 99' > onnxruntime_c_api.h; : > onnxruntime_cxx_api.h`;
  const aptGet = withAptGet(t, ': > any.deb', unpack);
  const { base } = await standIn(t);
  const target = path.join(temporary(t), 'headers');
  const [osRelease, entries] = debian;
  await fetchHeaders(nothing, { target, osRelease, entries, repository: { base, release } });
  t.true(aptGet());
  t.is(readFileSync(path.join(target, 'onnxruntime_c_api.h'), 'utf8'), contents['onnxruntime_c_api.h']);
});

test.serial('if neither is available, one error has both reasons and the remedy', async (t) => {
  withAptGet(t);
  const { base } = await standIn(t, {});
  const [osRelease, entries] = debian;
  const target = path.join(temporary(t), 'headers');
  const error = await t.throwsAsync(
    fetchHeaders(nothing, { target, osRelease, entries, repository: { base, release } }),
  );
  t.regex(error.message, /From Debian: .*apt-get.*\(100\)/);
  t.regex(error.message, /From its repository: .*onnxruntime_c_api\.h could not be fetched: HTTP status 404/);
  t.regex(error.message, /ONNXRUNTIME_INCLUDE_DIR/);
});

test('a file with another digest is refused, and existing files stay', async (t) => {
  const { base } = await standIn(t, { ...contents, 'onnxruntime_cxx_api.h': '// Changed\n' });
  const folder = temporary(t);
  const target = path.join(folder, 'headers');
  mkdirSync(target);
  writeFileSync(path.join(target, 'before'), '');
  const { message } = await t.throwsAsync(fetchFromRepository(target, nothing, { base, release }));
  t.regex(message, /onnxruntime_cxx_api\.h has the wrong checksum/);
  t.true(message.includes(sha256('// Changed\n')) && message.includes(sha256('// C++\n')));
  t.deepEqual(readdirSync(target), ['before']);
  t.deepEqual(readdirSync(folder), ['headers']);
});

test('an unreachable host is reported', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  const target = path.join(temporary(t), 'headers');
  await t.throwsAsync(fetchFromRepository(target, nothing, { base: `http://127.0.0.1:${port}`, release }), {
    message: /could not be fetched: .*ECONNREFUSED/,
  });
});

/** A folder with headers of a given release, in another folder. */
function headersOf(t, version) {
  const folder = temporary(t);
  writeFileSync(path.join(folder, 'onnxruntime_c_api.h'), `#define ORT_API_VERSION ${version}\n`);
  writeFileSync(path.join(folder, 'onnxruntime_cxx_api.h'), '');
  return folder;
}

test('unsuitable system headers are skipped', (t) => {
  const [old, fitting, newer] = [22, 24, 31].map((version) => headersOf(t, version));
  const find = (...folders) => localHeaders(30, { named: '', folders: () => folders });
  t.is(find(old, newer, temporary(t), fitting), fitting);
  t.is(find(old, newer), undefined);
});

test("a configured folder takes precedence over the system's, and is refused if unsuitable", (t) => {
  const fitting = headersOf(t, 24);
  const named = (folder) => localHeaders(30, { named: folder, folders: () => [fitting] });
  const own = headersOf(t, 23);
  t.is(named(own), own);
  t.throws(() => named(temporary(t)), { message: /ONNXRUNTIME_INCLUDE_DIR is .* not in that folder/ });
  for (const version of [22, 31])
    t.throws(() => named(headersOf(t, version)), {
      message: new RegExp(`1\\.${version}; 1\\.23 to 1\\.30 are allowed`),
    });
});

const here = findHeaders();
const theirs = files.every((file) => existsSync(path.join(here ?? '', file)));
const known =
  theirs &&
  /^#define ORT_API_VERSION 23$/m.test(readFileSync(path.join(here, 'onnxruntime_c_api.h'), 'utf8'));

(known ? test : test.skip)("the known digests are those of this machine's headers of 1.23", (t) => {
  for (const file of files)
    t.is(sha256(readFileSync(path.join(here, file))), knownRelease.sha256[file], file);
});

(theirs ? test : test.skip)(
  'the addon includes no header of ONNX Runtime besides those that are fetched',
  (t) => {
    const folder = temporary(t);
    for (const file of files) copyFileSync(path.join(here, file), path.join(folder, file));
    const sources = readdirSync(inRoot('native', 'ort')).filter((name) => name.endsWith('.cc'));
    const args = ['-std=c++20', '-DORT_API_MANUAL_INIT', '-M', `-I${inRoot('native')}`, `-I${folder}`];
    const output = execFileSync(
      process.env.CXX ?? 'c++',
      [...args, ...sources.map((name) => inRoot('native', 'ort', name))],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
    );
    for (const file of files) t.true(output.includes(path.join(folder, file)), file);
  },
);

(known ? test.serial : test.skip)(
  'on Ubuntu the real files come from the mirror that is named',
  async (t) => {
    const real = Object.fromEntries(files.map((file) => [file, readFileSync(path.join(here, file))]));
    const { base } = await standIn(t, real);
    const before = process.env.ONNXRUNTIME_HEADERS_URL;
    process.env.ONNXRUNTIME_HEADERS_URL = base;
    t.teardown(() => {
      if (before === undefined) delete process.env.ONNXRUNTIME_HEADERS_URL;
      else process.env.ONNXRUNTIME_HEADERS_URL = before;
    });
    const target = path.join(temporary(t), 'headers');
    const [osRelease, entries] = systems.Ubuntu;
    await fetchHeaders(nothing, { target, osRelease, entries });
    t.deepEqual(readdirSync(target).sort(), [...files].sort());
    t.is(localHeaders(30, { named: target }), target);
  },
);
