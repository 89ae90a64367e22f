// biome-ignore-all lint/suspicious/noTemplateCurlyInString: as it stands in Dockerfiles
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import test from 'ava';
import { expand, pairs, parseDockerfile } from '../../scripts/image/dockerfile.js';
import { npmFolder } from '../../scripts/image/root.js';
import { build, inBuild, inRoot } from '../../scripts/setup/paths.js';

const read = (name) => readFileSync(inRoot('deploy', name), 'utf8');
const of = (stage, op) => stage.steps.filter((step) => step.op === op).map(({ text }) => text);

test('stages, their bases and their steps, with arguments substituted', (t) => {
  const text = [
    '# a comment',
    'ARG BASE=one',
    'FROM ${BASE}-slim AS build',
    'RUN first \\',
    '  && second',
    'FROM other',
    'COPY --from=build /a /b',
  ].join('\n');
  t.deepEqual(parseDockerfile(text), [
    { name: 'build', base: 'one-slim', steps: [{ op: 'RUN', text: 'first    && second' }] },
    { name: '1', base: 'other', steps: [{ op: 'COPY', text: '--from=build /a /b' }] },
  ]);
  t.is(parseDockerfile(text, { BASE: 'two' })[0].base, 'two-slim');
  t.throws(() => parseDockerfile('FROM a\nADD x y'), { message: /ADD x y/ });
  t.throws(() => parseDockerfile('# nothing'), { message: /no FROM/ });
});

test('values', (t) => {
  t.is(expand('a $B ${C}d $E', { B: '1', C: '2' }), 'a 1 2d ');
  t.deepEqual(pairs('A=1 B="two words" C='), { A: '1', B: 'two words', C: '' });
});

test('a program that npm did not start names the command that starts it', (t) => {
  for (const command of ['npm run image', 'npm run package -- --prove'])
    for (const program of ['', '/usr/bin/yarn.js'])
      t.throws(() => npmFolder(command, program), { message: `Start this through npm: \`${command}\`.` });
  t.is(npmFolder('npm run image', '/a/npm/bin/npm-cli.js'), '/a/npm');
});

for (const file of ['Dockerfile', 'Dockerfile.cuda'])
  test(`${file}: not root, a health check, one writable folder, no network included by default`, (t) => {
    const stages = parseDockerfile(read(file));
    const last = stages.at(-1);
    t.deepEqual(of(last, 'USER'), ['10001:10001']);
    t.deepEqual(of(last, 'VOLUME'), ['/data']);
    t.is(of(last, 'HEALTHCHECK').length, 1);
    t.deepEqual(of(last, 'ENTRYPOINT'), ['["/opt/cutout/deploy/image/entrypoint.sh"]']);
    t.deepEqual(of(last, 'ARG').at(-1), 'NETWORKS=""');
    const env = pairs(of(last, 'ENV').join(' '));
    t.is(env.CUTOUT_DATA_DIR, '/data');
    t.falsy(Object.keys(env).find((name) => /KEY|TOKEN|SECRET|PASSWORD/.test(name)));
    // The user comes last: everything installed belongs to root.
    const ops = last.steps.map(({ op }) => op);
    t.true(ops.lastIndexOf('RUN') < ops.indexOf('USER'));
  });

test('both images are set up by the same scripts', (t) => {
  const runs = (file) => parseDockerfile(read(file)).flatMap((stage) => of(stage, 'RUN'));
  t.deepEqual(runs('Dockerfile.cuda'), [
    'sh deploy/image/build.sh /opt/cutout cuda12 ${PROVIDERS_SHA256}',
    'sh /opt/cutout/deploy/image/install.sh ${NETWORKS}',
  ]);
  t.deepEqual(
    runs('Dockerfile'),
    runs('Dockerfile.cuda').map((line) => line.replace(' cuda12 ${PROVIDERS_SHA256}', '')),
  );
});

test('every third-party image is pinned by version or digest', (t) => {
  const bases = ['Dockerfile', 'Dockerfile.cuda'].flatMap((file) =>
    parseDockerfile(read(file)).map(({ base }) => base),
  );
  const used = [...read('compose.yml').matchAll(/^ +image: (\S+)$/gm)]
    .map(([, image]) => image)
    // Built from this repository.
    .filter((image) => image !== 'cutout');
  t.deepEqual(used.map((image) => image.split(':')[0]).sort(), ['postgres', 'prom/prometheus', 'redis']);
  for (const image of used) t.regex(image, /:v?\d+\.\d+[\w.-]*$|@sha256:[0-9a-f]{64}$/);
  for (const image of bases) t.regex(image, /:\d+[\w.-]*$|@sha256:[0-9a-f]{64}$/);
});

test('files fetched without a checksum are pinned by digest', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-image-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const sha = (text) => createHash('sha256').update(text).digest('hex');
  const contents = { 'libone.so': 'one', 'libtwo.so': 'two' };
  const files = Object.keys(contents).map((name) => path.join(folder, name));
  for (const [name, text] of Object.entries(contents)) writeFileSync(path.join(folder, name), text);
  const digest = sha(
    Object.entries(contents)
      .map(([name, text]) => `${sha(text)}  ${name}\n`)
      .join(''),
  );
  const check = (...args) =>
    spawnSync('sh', [inRoot('deploy', 'image', 'check.sh'), ...args], { encoding: 'utf8' });
  t.is(check(digest, ...files).status, 0);
  const asked = check('', ...files);
  t.is(asked.status, 1);
  t.regex(asked.stderr, new RegExp(`PROVIDERS_SHA256=${digest}`));
  t.regex(asked.stderr, new RegExp(`${sha('two')}  libtwo.so`));
  t.is(check(digest, files[0]).status, 1);
  t.is(check(digest, files[0], path.join(folder, 'missing.so')).status, 1);
  writeFileSync(files[1], 'tWo');
  const changed = check(digest, ...files);
  t.is(changed.status, 1);
  t.regex(changed.stderr, new RegExp(`not ${digest}`));
});

test("everything that an image's build fetches itself is verified", (t) => {
  const build = read('image/build.sh');
  t.regex(
    build,
    /--onnxruntime-node-install=\$accelerator"\)\n {2}sh "\$out\/deploy\/image\/check\.sh" "\$providers"/,
  );
  for (const script of ['build.sh', 'install.sh', 'entrypoint.sh'])
    t.notRegex(read(`image/${script}`), /\b(curl|wget|allow-unauthenticated|no-check)\b|trusted=yes/);
  const { packages } = JSON.parse(readFileSync(inRoot('package-lock.json'), 'utf8'));
  for (const [name, { integrity, link }] of Object.entries(packages))
    if (name !== '' && !link) t.regex(integrity ?? '', /^sha512-/, name);
});

const scripts = ['build.sh', 'install.sh', 'entrypoint.sh', 'check.sh', 'healthy.js'];

test('every file that the Dockerfiles and their scripts name is part of what an image is built from', (t) => {
  const ignored = readFileSync(inRoot('.dockerignore'), 'utf8').split('\n');
  const texts = ['Dockerfile', 'Dockerfile.cuda', ...scripts.map((name) => `image/${name}`)]
    .map(read)
    .join('\n');
  const named = new Set([...texts.matchAll(/deploy\/image\/[\w.]+/g)].map(([file]) => file));
  t.deepEqual([...named].sort(), scripts.map((name) => `deploy/image/${name}`).sort());
  for (const file of named) {
    t.true(existsSync(inRoot(file)), file);
    t.false(ignored.includes(file.split('/')[0]));
  }
});

// The packages are those of a checkout: which of them an image gets is not tested here.
test('what an image takes from a build is enough to run', async (t) => {
  mkdirSync(build, { recursive: true });
  // Beside the build, so that files can be linked instead of copied.
  const folder = mkdtempSync(inBuild('image-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const programs = {
    'apt-get': 'exit 0',
    npm: 'exit 0',
    cp: '[ "$1" != -r ] || shift; exec /bin/cp -al "$@"',
  };
  for (const [name, line] of Object.entries(programs))
    writeFileSync(path.join(folder, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  const out = path.join(folder, 'cutout');
  const made = spawnSync('sh', [inRoot('deploy/image/build.sh'), out], {
    cwd: inRoot(),
    encoding: 'utf8',
    env: { PATH: `${folder}:${path.dirname(process.execPath)}:${process.env.PATH}` },
  });
  t.is(made.status, 0, made.stderr);
  const texts = ['Dockerfile', ...scripts.map((name) => `image/${name}`)].map(read).join('\n');
  for (const [, file] of texts.matchAll(/\/opt\/cutout\/((?:deploy|build\/ts)\/[\w./-]+)/g))
    t.true(existsSync(path.join(out, file)), file);

  const run = (...args) =>
    spawnSync(process.execPath, [path.join(out, 'build/ts/src/main.js'), ...args], {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, CUTOUT_DATA_DIR: path.join(folder, 'data') },
    });
  const { version } = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'));
  t.is(run('--version').stdout, `${version}\n`);
  t.regex(run('models', 'list').stdout, / isnet /);
  const { stdout } = run('doctor');
  t.regex(stdout, /^Pixel loops +\w/m, 'what the addon says');
  const [, runtime = ''] = /^ONNX Runtime .*?(\/\S+libonnxruntime\S+)/m.exec(stdout) ?? [];
  t.true(runtime.startsWith(out) && existsSync(runtime), stdout);
  const { pagesFolder } = await import(
    pathToFileURL(path.join(out, 'build/ts/src/server/installation.js')).href
  );
  t.true(existsSync(path.join(pagesFolder, 'index.html')), pagesFolder);
});
