import { execFileSync } from 'node:child_process';
import { familyOf, readOsRelease } from './distribution.js';
import { SetupError } from './step.js';

const MIN_GXX = 11;
const MIN_CMAKE = [3, 22];

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

/** One sentence that names missing tools, or ''. */
export function missingSentence(missing, osRelease) {
  if (missing.length === 0) return '';
  const family = familyOf(osRelease);
  if (!family) return `Please install ${missing.map((m) => m.what).join(', ')} and run the command again.`;
  const packages = missing.map((m) => family.names[m.key]).join(' ');
  return `Missing ${missing.map((m) => m.what).join(', ')}: install with \`${family.install} ${packages}\` and run the command again.`;
}

const makes = () => versionOf('make', ['--version'], /(\d+)\.(\d+)/) !== null;
const hasNinja = () => versionOf('ninja', ['--version'], /(\d+)\.(\d+)/) !== null;

/** CMake's generator on this machine; given explicitly, because CMake and cmake-js would choose differently. */
export const generator = () => (hasNinja() ? 'Ninja' : 'Unix Makefiles');

/** Throws a SetupError with one sentence that names what to install on this system. */
export function checkToolchain() {
  const missing = [];
  const gxx = versionOf(process.env.CXX ?? 'c++', ['-dumpfullversion', '-dumpversion'], /^(\d+)/);
  if (!gxx || gxx[0] < MIN_GXX)
    missing.push({ key: 'cxx', what: `a C++20 compiler (g++ ${MIN_GXX} or newer)` });
  const cmake = versionOf('cmake', ['--version'], /version (\d+)\.(\d+)/);
  if (!cmake || !atLeast(cmake, MIN_CMAKE))
    missing.push({ key: 'cmake', what: `CMake ${MIN_CMAKE.join('.')} or newer` });
  if (!makes() && !hasNinja()) missing.push({ key: 'make', what: 'make' });
  const sentence = missingSentence(missing, readOsRelease());
  if (sentence) throw new SetupError(sentence);
}
