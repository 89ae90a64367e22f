import { SetupError } from './step.js';

/** The oldest C library that better-sqlite3's prebuilt file runs on; ONNX Runtime's and Node.js's need less. */
const MIN_GLIBC = [2, 34];

/** Properties of this machine that decide whether the packages' binaries run on it. */
function thisMachine() {
  const report = process.platform === 'linux' ? process.report.getReport() : {};
  return { platform: process.platform, arch: process.arch, glibc: report.header?.glibcVersionRuntime };
}

/** One sentence that says why this machine cannot run Cutout, or ''. */
export function systemSentence({ platform, arch, glibc }) {
  if (platform !== 'linux') return `Cutout runs on Linux; this is ${platform}.`;
  if (arch !== 'x64' && arch !== 'arm64')
    return `Cutout runs on x64 and arm64, for which ONNX Runtime is published; this is ${arch}.`;
  if (!glibc)
    return "This system's C library is musl (Alpine Linux and the like); ONNX Runtime is published for glibc alone: use the container image, or a system with glibc (Debian, Ubuntu, Fedora, Arch Linux).";
  const [major, minor] = glibc.split('.').map(Number);
  if (major < MIN_GLIBC[0] || (major === MIN_GLIBC[0] && minor < MIN_GLIBC[1]))
    return `This system's C library is glibc ${glibc}; ${MIN_GLIBC.join('.')} or newer is needed (Debian 12, Ubuntu 22.04, RHEL 9): use the container image, or a newer system.`;
  return '';
}

/** Throws a SetupError on a machine that cannot run Cutout, before anything is downloaded. */
export function checkSystem() {
  const sentence = systemSentence(thisMachine());
  if (sentence) throw new SetupError(sentence);
}
