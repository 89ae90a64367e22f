import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { machineSources } from '../setup/headers/debian.js';
import { inBuild, inRoot, root as repository } from '../setup/paths.js';
import { runProgram, SetupError } from '../setup/step.js';

const release = 'bookworm';
export const certificates = '/etc/ssl/certs/ca-certificates.crt';
const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The folder of the npm that started this program by `command`. Throws SetupError if npm did not start it. */
export function npmFolder(command, program = process.env.npm_execpath) {
  if (!program || path.basename(program) !== 'npm-cli.js')
    throw new SetupError(`Start this through npm: \`${command}\`.`);
  return path.dirname(path.dirname(program));
}

/**
 * Replaces an image of Node.js on Debian: a fresh Debian with the Node.js and npm that run this program by `command`.
 * Made once for each.
 */
export async function baseRoot(command, progress) {
  const folder = inBuild('image', `base-${process.version}`);
  if (existsSync(folder)) return folder;
  const source = machineSources().find(({ uri, suites }) => uri && suites.includes(release));
  if (!source) throw new SetupError(`This machine has no package source of Debian ${release}.`);
  const draft = `${folder}.new`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(path.dirname(draft), { recursive: true });
  await runProgram(
    'image-debootstrap',
    'debootstrap',
    ['--variant=minbase', '--force-check-gpg', release, draft, source.uri],
    {
      progress,
    },
  );
  // The machine's own package sources.
  for (const file of ['/etc/apt/sources.list', '/etc/apt/sources.list.d/debian.sources', '/etc/resolv.conf'])
    if (existsSync(file)) cpSync(file, path.join(draft, file), { dereference: true });
  if (existsSync(path.join(draft, 'etc/apt/sources.list.d/debian.sources')))
    rmSync(path.join(draft, 'etc/apt/sources.list'), { force: true });
  // Path of Node.js in the image.
  const local = (...parts) => path.join(draft, 'usr/local', ...parts);
  cpSync(process.execPath, local('bin', 'node'), { dereference: true });
  cpSync(npmFolder(command), local('lib', 'node_modules', 'npm'), { recursive: true });
  for (const tool of ['npm', 'npx'])
    writeFileSync(
      local('bin', tool),
      `#!/bin/sh\nexec node /usr/local/lib/node_modules/npm/bin/${tool}-cli.js "$@"\n`,
      { mode: 0o755 },
    );
  // The C++ library that Node.js needs; without what slim images omit.
  const slim = [
    'apt-get update',
    'apt-get install --yes --no-install-recommends libstdc++6',
    'apt-get clean',
    'rm -rf /var/lib/apt/lists/* /usr/share/doc/* /usr/share/man/* /usr/share/locale/* /usr/share/info/*',
  ];
  await inside(draft, slim.join(' && '), { progress });
  renameSync(draft, folder);
  return folder;
}

/** Runs a shell command as root of `folder`. */
export async function inside(
  folder,
  line,
  { cwd = '/', env = {}, progress = () => {}, log = 'image-run' } = {},
) {
  const script =
    'mount -t proc proc "$1/proc"; mount --bind /dev "$1/dev"; exec chroot "$1" sh -ec "cd $2; $3"';
  // The machine may reach the registry through a proxy whose certificate only it knows.
  if (existsSync(certificates)) cpSync(certificates, path.join(folder, 'tmp', 'certificates.crt'));
  await runProgram(
    log,
    'env',
    [
      '-i',
      `PATH=${systemPath}`,
      'HOME=/root',
      'DEBIAN_FRONTEND=noninteractive',
      'npm_config_cafile=/tmp/certificates.crt',
      'NODE_EXTRA_CA_CERTS=/tmp/certificates.crt',
      ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
      'unshare',
      '--mount',
      'sh',
      '-ec',
      script,
      'sh',
      folder,
      cwd,
      line,
    ],
    { progress },
  );
  rmSync(path.join(folder, 'tmp', 'certificates.crt'), { force: true });
}

/** A separate root to work in. */
export async function cloneRoot(from, to) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(path.dirname(to), { recursive: true });
  await runProgram('image-clone', 'cp', ['-a', from, to]);
}

const ignored = () =>
  readFileSync(inRoot('.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '');

/** Files and folders at the top of the repository that an image is built from. */
export function contextEntries() {
  const left = new Set(ignored());
  return readdirSync(repository)
    .filter((name) => !left.has(name) && !name.endsWith('.log'))
    .sort();
}

/** The repository without the files listed in .dockerignore. */
export async function copyContext(to) {
  mkdirSync(to, { recursive: true });
  const excludes = ignored().map((pattern) => `--exclude=./${pattern}`);
  await runProgram('image-context', 'sh', [
    '-c',
    'to=$1; shift; tar -c --anchored --no-wildcards-match-slash "$@" . | tar -x -C "$to"',
    'sh',
    to,
    ...excludes,
    '-C',
    repository,
  ]);
}
