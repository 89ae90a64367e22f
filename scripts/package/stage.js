import { constants, copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { inBuild, inRoot } from '../setup/paths.js';
import { closureOf, folderOf } from './packages.js';

/** @typedef {import('./packages.js').Platform} Platform */

/** Opened by our addon, which is carried beside it; of the npm package nothing else is needed (decision 0001). */
const runtime = 'onnxruntime-node';

/**
 * The folder of the archive that holds everything which runs, its packages included. npm reads `node_modules` of a package
 * before it installs it, and unpacks the archive twice more for that; below this folder it looks at nothing.
 */
const app = 'app';

/** Files of the repository for the reader of the archive. */
const papers = ['LICENSE', 'README.md', 'CHANGELOG.md'];
/** Files of the repository in the folder, as they are. */
const files = [
  'bin/cutout.js',
  // What bin/cutout.js needs of set-up.
  'scripts/setup/process.js',
  'scripts/setup/requirements.js',
  // What `cutout runtime install` installs.
  'scripts/setup/cuda.txt',
  'scripts/setup/tensorrt.txt',
];
/** Folders likewise; those of the build are made by set-up. */
const folders = ['models', 'build/ts/src', 'build/web'];

/** Declarations and source maps: not needed to run. */
const isSuperfluous = (name) => /\.(d\.[mc]?ts|map)$/.test(name);

/** What packages carry for those who work on them: npm's time grows with the files. */
const isForDevelopers = (file) =>
  /^(tests?|__tests__|examples?|bench|benchmarks?|docs?)\//.test(file) ||
  /(^|\/)\./.test(file) ||
  /\.([mc]?ts|flow|yml)$/.test(file) ||
  (/\.(md|markdown)$/i.test(file) && !/(^|\/)(licen[cs]e|notice|copying)/i.test(file));

/** Whether a file of an npm package is left out: copies of the code for bundlers, sources and other systems' binaries. */
function isLeftOut(place, file, platforms) {
  if (isForDevelopers(file)) return true;
  // Cutout imports the ES modules.
  if (place === 'node_modules/stripe') return file.startsWith('cjs/');
  if (place.startsWith('node_modules/@opentelemetry/')) return /^build\/(esm|esnext)\//.test(file);
  if (place !== 'node_modules/better-sqlite3') return false;
  return (
    /^(deps|src)\//.test(file) ||
    (file.startsWith('prebuilds/') &&
      !platforms.some(({ os, cpu }) => file === `prebuilds/${os}-${cpu}.node`))
  );
}

/** A copy, not a link: tar fails if a program links to a file while it reads it. */
function put(from, to) {
  mkdirSync(path.dirname(to), { recursive: true });
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
}

/** Copies a folder without nested packages, each of which is an entry of the lockfile. */
function putFolder(from, to, isKept = () => true) {
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    const full = path.join(entry.parentPath, entry.name);
    const name = path.relative(from, full).split(path.sep).join('/');
    if (entry.isFile() && !/(^|\/)node_modules\//.test(name) && isKept(name)) put(full, path.join(to, name));
  }
}

/** The manifest that npm reads: there is nothing that it would have to find. */
function manifestOf({ name, version, description, license, type, engines, bin }, platforms) {
  const programs = Object.entries(bin).map(([program, file]) => [program, `${app}/${file}`]);
  return {
    ...{ name, version, description, license, private: true, type, engines },
    ...{ os: ['linux'], cpu: platforms.map(({ cpu }) => cpu), libc: ['glibc'] },
    bin: Object.fromEntries(programs),
  };
}

const writeJson = (file, value) => writeFileSync(file, `${JSON.stringify(value, undefined, 2)}\n`);

/**
 * Puts the libraries of each platform into a folder of its own.
 * @param {string} target
 * @param {ReadonlyMap<Platform, string>} addons
 * @param {string | undefined} kernels
 */
export function stageBinaries(target, addons, kernels) {
  for (const [{ os, cpu }, addon] of addons) {
    const binaries = path.join(target, `${os}-${cpu}`);
    const library = ['bin', 'napi-v6', os, cpu, 'libonnxruntime.so.1'];
    put(addon, path.join(binaries, 'cutout.node'));
    put(inRoot('node_modules', runtime, ...library), path.join(binaries, 'libonnxruntime.so.1'));
    put(inRoot('scripts', 'package', 'LICENSE.onnxruntime'), path.join(binaries, 'LICENSE.onnxruntime'));
    if (kernels === undefined || cpu !== process.arch) continue;
    // The engine looks for it beside the addon (native/cuda/library.h).
    put(kernels, path.join(binaries, 'libcutout_cuda.so'));
    put(inRoot('scripts', 'package', 'NOTICE.cuda'), path.join(binaries, 'NOTICE.cuda'));
  }
}

/**
 * Puts everything that an installed Cutout needs into `target`, which must not exist. Set-up is complete.
 * @param {string} target
 * @param {ReadonlyMap<Platform, string>} addons the built addon of each platform
 * @param {string} [kernels] libcutout_cuda.so for this machine's platform
 */
export async function stage(target, addons, kernels) {
  const platforms = [...addons.keys()];
  const manifest = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'));
  const inApp = (...parts) => path.join(target, app, ...parts);
  for (const file of papers) put(inRoot(file), path.join(target, file));
  for (const file of files) put(inRoot(file), inApp(file));
  for (const folder of folders) putFolder(inRoot(folder), inApp(folder), (name) => !isSuperfluous(name));
  writeJson(path.join(target, 'package.json'), manifestOf(manifest, platforms));
  const { name, version, type, engines } = manifest;
  writeJson(inApp('package.json'), { name, version, private: true, type, engines });
  const { commit } = await import(inBuild('ts', 'src', 'server', 'installation.js'));
  writeFileSync(inApp('build', 'commit'), commit() ?? '');

  stageBinaries(inApp('build', 'binaries'), addons, kernels);

  const packages = Object.keys(manifest.dependencies).filter((each) => each !== runtime);
  for (const each of closureOf(packages, platforms)) {
    const isKept = (file) => !isSuperfluous(file) && !isLeftOut(each.place, file, platforms);
    putFolder(await folderOf(each), inApp(each.place), isKept);
  }
}

/** The file that an archive is made to by default. */
export const archiveFile = () => {
  const { name, version } = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'));
  return inBuild('package', `${name}-${version}.tgz`);
};
