import { readFileSync } from 'node:fs';

// What Cutout needs of a machine: before anything is downloaded by set-up, and at the start of an installed package,
// which has no other file of set-up but process.js. Parsed by Node.js 18, without packages.

/** The oldest C library that better-sqlite3's prebuilt file runs on; all other binaries run on older ones. */
export const minGlibc = Object.freeze([2, 34]);

const { engines } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

/** Whether a version is in a range of the form `^x.y.z` and `>=x.y.z`, joined by `||`, as in "engines" of package.json. */
export function satisfies(version, range = engines.node) {
  const numbers = (text) => text.split('.').map(Number);
  const [major, minor, patch] = numbers(version);
  return range.split('||').some((part) => {
    const [, operator, minimum] = /^\s*(\^|>=)(\d+\.\d+\.\d+)\s*$/.exec(part) ?? [];
    if (!operator) throw new Error(`"engines" has a range that is not understood here: ${part}`);
    const [wantedMajor, wantedMinor, wantedPatch] = numbers(minimum);
    if (major !== wantedMajor) return operator === '>=' && major > wantedMajor;
    return minor > wantedMinor || (minor === wantedMinor && patch >= wantedPatch);
  });
}

/** Properties of this machine that decide whether the packages' binaries run on it. */
function thisMachine() {
  if (process.platform === 'linux') process.report.excludeNetwork = true;
  const report = process.platform === 'linux' ? process.report.getReport() : {};
  return { platform: process.platform, arch: process.arch, glibc: report.header?.glibcVersionRuntime };
}

/** One sentence that says why a machine cannot run Cutout, or ''. */
export function systemSentence({ platform, arch, glibc } = thisMachine()) {
  if (platform !== 'linux') return `Cutout runs on Linux; this is ${platform} (docs/platforms.md).`;
  if (arch !== 'x64' && arch !== 'arm64')
    return `Cutout runs on x64 and arm64, for which ONNX Runtime is published; this is ${arch}.`;
  if (!glibc)
    return "This system's C library is musl (Alpine Linux and the like); ONNX Runtime is published for glibc alone: use the container image, or a system with glibc (Debian, Ubuntu, Fedora, Arch Linux).";
  const [major, minor] = glibc.split('.').map(Number);
  if (major < minGlibc[0] || (major === minGlibc[0] && minor < minGlibc[1]))
    return `This system's C library is glibc ${glibc}; ${minGlibc.join('.')} or newer is needed (Debian 12, Ubuntu 22.04, RHEL 9): use the container image, or a newer system.`;
  return '';
}

/** One sentence that says why an installed package cannot run here, or ''. @param {readonly string[]} carried e.g. linux-x64 */
export function packageSentence(
  carried,
  { node = process.versions.node, platform = process.platform, arch = process.arch } = {},
) {
  if (!satisfies(node)) return `Cutout needs Node.js ${engines.node}; this is ${node}.`;
  if (!carried.includes(`${platform}-${arch}`))
    return `This package of Cutout is for ${carried.join(', ')}; this is ${platform}-${arch}.`;
  return '';
}
