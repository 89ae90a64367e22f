import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { inRoot } from '../../scripts/setup/paths.js';
import { ownRelease, triedReleases } from '../../scripts/setup/releases.js';
import { satisfies } from '../../scripts/setup/requirements.js';

test('version ranges are evaluated', (t) => {
  const range = '^22.20.0 || ^24.12.1 || >=26.0.0';
  for (const version of ['22.20.0', '22.21.0', '24.12.1', '24.13.0', '26.0.0', '26.10.0', '27.0.0'])
    t.true(satisfies(version, range), version);
  for (const version of ['18.20.0', '20.20.2', '22.19.9', '23.99.0', '24.12.0', '24.11.9', '25.0.0'])
    t.false(satisfies(version, range), version);
  t.throws(() => satisfies('22.0.0', '~22.0.0'), { message: /not understood/ });
});

test('Cutout runs on the release that it fetches and on every tested one, except the one that is too old', (t) => {
  t.true(satisfies(ownRelease.version));
  t.deepEqual(
    triedReleases.map(({ version }) => [version.split('.')[0], satisfies(version)]),
    [
      ['20', false],
      ['22', true],
      ['24', true],
      ['26', true],
    ],
  );
  for (const { integrity } of triedReleases)
    for (const arch of ['x64', 'arm64']) t.regex(integrity[arch], /^sha512-[\w+/]{86}==$/);
});

test('images are built on the line that is fetched', (t) => {
  const [major] = ownRelease.version.split('.');
  for (const file of ['Dockerfile', 'Dockerfile.cuda'])
    t.regex(readFileSync(inRoot('deploy', file), 'utf8'), new RegExp(`^ARG NODE=${major}[.-]`, 'm'));
});

/**
 * A copy of the set-up in a folder of its own that supports no existing Node.js. npm gives it a "Node.js" that records
 * how it was started and then runs `behaviour`, a shell script.
 */
function place(t, behaviour, { tampered = false } = {}) {
  const root = mkdtempSync(path.join(tmpdir(), 'cutout-nodejs-'));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  cpSync(inRoot('scripts', 'setup'), path.join(root, 'scripts', 'setup'), { recursive: true });
  writeFileSync(
    path.join(root, 'package.json'),
    JSON.stringify({ type: 'module', engines: { node: '>=1000.0.0' } }),
  );
  writeFileSync(
    path.join(root, 'scripts', 'try.js'),
    "import { onSupportedNode } from './setup/nodejs.js';\nawait onSupportedNode();\nconsole.log('went on');\n",
  );
  const packed = path.join(root, 'packed', 'package');
  mkdirSync(path.join(packed, 'bin'), { recursive: true });
  const record = 'for each in "$@" "$PATH" "$NODE"; do echo "$each"; done';
  writeFileSync(path.join(packed, 'bin', 'node'), `#!/bin/sh\n${record}\n${behaviour}\n`, { mode: 0o755 });
  writeFileSync(path.join(packed, 'LICENSE'), 'licence');
  const tools = path.join(root, 'tools');
  mkdirSync(tools);
  // npm's package is made once, so that its digest is known.
  const archive = path.join(root, 'node.tgz');
  execFileSync('tar', ['-czf', archive, '-C', path.join(root, 'packed'), 'package']);
  const asked = path.join(root, 'asked');
  writeFileSync(
    path.join(tools, 'npm'),
    `#!/bin/sh\necho "$@" >> ${asked}\nfor last; do :; done\ncp ${archive} "$last/node.tgz"\n`,
    { mode: 0o755 },
  );
  const digest = createHash('sha512')
    .update(tampered ? 'another' : readFileSync(archive))
    .digest('base64');
  const release = { version: '1000.0.0', integrity: { [process.arch]: `sha512-${digest}` } };
  writeFileSync(
    path.join(root, 'scripts', 'setup', 'releases.js'),
    `export const ownRelease = ${JSON.stringify(release)};\n`,
  );
  const start = (...args) => {
    const child = spawn(process.execPath, [path.join(root, 'scripts', 'try.js'), ...args], {
      env: { ...process.env, PATH: `${tools}:${process.env.PATH}` },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    return child;
  };
  const run = async (...args) => {
    const child = start(...args);
    const [stdout, stderr, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    return { code, stdout, stderr };
  };
  const npmCalls = () => (existsSync(asked) ? readFileSync(asked, 'utf8').trim().split('\n') : []);
  return { root, start, run, npmCalls, tools };
}

test('on an unsupported Node.js one is fetched once and continues with the same arguments', async (t) => {
  const { root, run, npmCalls } = place(t, 'exit 7');
  const folder = path.join(root, 'build', 'node');
  for (let time = 1; time <= 2; time++) {
    const { code, stdout, stderr } = await run('one', 'two words');
    t.is(code, 7, stderr);
    const lines = stdout.trim().split('\n');
    t.deepEqual(lines.slice(0, 3), [path.join(root, 'scripts', 'try.js'), 'one', 'two words']);
    // npm and every other child process finds this one.
    t.true(lines[3].startsWith(`${path.join(folder, 'bin')}:`));
    t.is(lines[4], path.join(folder, 'bin', 'node'));
    t.is(npmCalls().length, 1);
    t.is(/fetch Node\.js 1000\.0\.0/.test(stderr), time === 1);
  }
  t.regex(npmCalls()[0], new RegExp(`^pack node-linux-${process.arch}@1000\\.0\\.0 .*--ignore-scripts`));
  t.deepEqual(readdirSync(folder).sort(), ['LICENSE', 'bin']);
});

test('on an unsupported Node.js npx starts the program of this folder', async (t) => {
  const { root, npmCalls, tools } = place(t, 'exit 7');
  for (const name of ['bin', '.npmrc']) cpSync(inRoot(name), path.join(root, name), { recursive: true });
  const manifest = { name: 'cutout', version: '1.0.0', type: 'module', bin: { cutout: 'bin/cutout.js' } };
  writeFileSync(
    path.join(root, 'package.json'),
    JSON.stringify({ ...manifest, engines: { node: '>=1000.0.0' } }),
  );
  const npx = spawnSync('npx', ['cutout', 'models', 'list'], {
    cwd: root,
    env: { ...process.env, PATH: `${tools}:${process.env.PATH}`, npm_config_cache: path.join(root, 'cache') },
    encoding: 'utf8',
  });
  t.is(npx.status, 7, npx.stderr);
  t.regex(npx.stdout, /\/cutout(\.js)?\nmodels\nlist\n/);
  t.is(npmCalls().length, 1);
});

test('a Node.js with another digest is not run', async (t) => {
  const { root, run } = place(t, 'exit 0', { tampered: true });
  const { code, stdout, stderr } = await run();
  t.is(code, 1);
  t.is(stdout, '');
  t.regex(stderr, /has the wrong checksum: its digest is sha512-/);
  t.deepEqual(
    readdirSync(path.join(root, 'build')).filter((name) => name.startsWith('node')),
    [],
  );
});

test('a signal to the waiting process ends the working one', async (t) => {
  const { start } = place(t, "trap 'echo ended; exit 0' TERM; echo started; while :; do sleep 0.05; done");
  const child = start();
  const closed = once(child, 'close');
  let output = '';
  child.stdout.on('data', (chunk) => {
    if (!output.includes('started') && `${output}${chunk}`.includes('started')) child.kill('SIGTERM');
    output += chunk;
  });
  const [code] = await closed;
  t.is(code, 0);
  t.regex(output, /started\nended\n$/);
});

test('on a supported one nothing is fetched', async (t) => {
  const { root, run, npmCalls } = place(t, 'exit 7');
  const [major] = process.versions.node.split('.');
  writeFileSync(
    path.join(root, 'package.json'),
    JSON.stringify({ type: 'module', engines: { node: `^${major}.0.0` } }),
  );
  const { code, stdout } = await run();
  t.is(code, 0);
  t.is(stdout, 'went on\n');
  t.deepEqual(npmCalls(), []);
});
