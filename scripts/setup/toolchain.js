import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { SetupError } from './step.js';

const MIN_NODE = [20, 20];
const MIN_GXX = 11;
const MIN_CMAKE = [3, 22];

/** Package names per family of systems, in the order compiler, CMake, make, Python. */
const FAMILIES = [
  {
    ids: ['debian', 'ubuntu'],
    install: 'apt-get install',
    names: { cxx: 'g++', cmake: 'cmake', make: 'make', python: 'python3' },
  },
  {
    ids: ['fedora', 'rhel', 'centos', 'suse'],
    install: 'dnf install',
    names: { cxx: 'gcc-c++', cmake: 'cmake', make: 'make', python: 'python3' },
  },
  {
    ids: ['arch'],
    install: 'pacman -S',
    names: { cxx: 'gcc', cmake: 'cmake', make: 'make', python: 'python' },
  },
  {
    ids: ['alpine'],
    install: 'apk add',
    names: { cxx: 'g++', cmake: 'cmake', make: 'make', python: 'python3' },
  },
];

function versionOf(command, args, pattern) {
  try {
    const text = execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    const match = pattern.exec(text);
    return match ? match.slice(1).map(Number) : [0];
  } catch {
    return null;
  }
}

const atLeast = (version, minimum) => {
  for (let i = 0; i < minimum.length; i++) {
    if ((version[i] ?? 0) !== minimum[i]) return (version[i] ?? 0) > minimum[i];
  }
  return true;
};

/** The system's family, from the text of os-release. */
export function familyOf(osRelease) {
  const field = (name) => new RegExp(`^${name}="?([^"\n]*)"?$`, 'm').exec(osRelease)?.[1] ?? '';
  const ids = `${field('ID')} ${field('ID_LIKE')}`.split(' ');
  return FAMILIES.find((family) => family.ids.some((id) => ids.includes(id)));
}

/** One sentence for what is missing, or '' when everything is there. */
export function missingSentence(missing, osRelease) {
  if (missing.length === 0) return '';
  const family = familyOf(osRelease);
  if (!family) return `Please install ${missing.map((m) => m.what).join(', ')} and run the command again.`;
  const packages = missing.map((m) => family.names[m.key]).join(' ');
  return `Missing ${missing.map((m) => m.what).join(', ')}: install with \`${family.install} ${packages}\` and run the command again.`;
}

/** Throws a SetupError with one sentence that names what to install on this system. */
export function checkToolchain() {
  const node = process.versions.node.split('.').map(Number);
  if (!atLeast(node, MIN_NODE)) {
    throw new SetupError(
      `Node.js ${process.versions.node} is too old: ${MIN_NODE.join('.')} or newer is needed.`,
    );
  }
  const missing = [];
  const gxx = versionOf(process.env.CXX ?? 'c++', ['-dumpfullversion', '-dumpversion'], /^(\d+)/);
  if (!gxx || gxx[0] < MIN_GXX)
    missing.push({ key: 'cxx', what: `a C++20 compiler (g++ ${MIN_GXX} or newer)` });
  const cmake = versionOf('cmake', ['--version'], /version (\d+)\.(\d+)/);
  if (!cmake || !atLeast(cmake, MIN_CMAKE))
    missing.push({ key: 'cmake', what: `CMake ${MIN_CMAKE.join('.')} or newer` });
  // node-gyp, which compiles better-sqlite3, calls make and Python even where Ninja is present.
  if (!versionOf('make', ['--version'], /(\d+)\.(\d+)/)) missing.push({ key: 'make', what: 'make' });
  if (!versionOf('python3', ['--version'], /(\d+)\.(\d+)/)) missing.push({ key: 'python', what: 'Python 3' });
  let osRelease = '';
  try {
    osRelease = readFileSync('/etc/os-release', 'utf8');
  } catch {
    // Not a Linux system that names itself: the sentence then lists the tools only.
  }
  const sentence = missingSentence(missing, osRelease);
  if (sentence) throw new SetupError(sentence);
}
