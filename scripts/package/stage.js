import { constants, copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { inBuild, inRoot } from '../setup/paths.js';
import { closureOf, folderOf } from './packages.js';

/** @typedef {import('./packages.js').Platform} Platform */

/** Opened by our addon, which is carried beside it; of the npm package nothing else is needed (docs/decisions/0001). */
const runtime = 'onnxruntime-node';

/** Files of the repository in the archive, as they are. */
const files = [
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  'bin/cutout.js',
  // What bin/cutout.js needs of set-up.
  'scripts/setup/process.js',
  'scripts/setup/requirements.js',
];
/** Folders likewise; those of the build are made by set-up. */
const folders = ['models', 'build/ts/src', 'build/web'];

/** Declarations and source maps: not needed to run. */
const isSuperfluous = (name) => /\.(d\.[mc]?ts|map)$/.test(name);

/** What packages carry for those who work on them. npm unpacks an archive three times, and its time grows with the files. */
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

/** npm would look for optional packages that are not carried, those of other systems, in a registry. */
function dropOptional(file, carried) {
  const manifest = JSON.parse(readFileSync(file, 'utf8'));
  const optional = Object.keys(manifest.optionalDependencies ?? {});
  const dropped = optional.filter((name) => !carried.has(name));
  if (dropped.length === 0) return;
  for (const name of dropped) delete manifest.optionalDependencies[name];
  writeFileSync(file, `${JSON.stringify(manifest, undefined, 2)}\n`);
}

/** The manifest of the archive: its packages are inside, so npm neither resolves nor fetches anything. */
function manifestOf(manifest, platforms) {
  const { name, version, description, license, type, engines, bin } = manifest;
  const { [runtime]: _, ...dependencies } = manifest.dependencies;
  return {
    ...{ name, version, description, license, private: true, type, engines },
    ...{ os: ['linux'], cpu: platforms.map(({ cpu }) => cpu), libc: ['glibc'] },
    ...{ bin, dependencies, bundleDependencies: Object.keys(dependencies) },
  };
}

/**
 * Puts everything that an installed Cutout needs into `target`, which must not exist. Set-up is complete.
 * @param {string} target
 * @param {ReadonlyMap<Platform, string>} addons the built addon of each platform
 */
export async function stage(target, addons) {
  const platforms = [...addons.keys()];
  const manifest = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'));
  const packed = manifestOf(manifest, platforms);
  for (const file of files) put(inRoot(file), path.join(target, file));
  for (const folder of folders)
    putFolder(inRoot(folder), path.join(target, folder), (name) => !isSuperfluous(name));
  writeFileSync(path.join(target, 'package.json'), `${JSON.stringify(packed, undefined, 2)}\n`);
  const { commit } = await import(inBuild('ts', 'src', 'server', 'installation.js'));
  writeFileSync(path.join(target, 'build', 'commit'), commit() ?? '');

  for (const [{ os, cpu }, addon] of addons) {
    const binaries = path.join(target, 'build', 'binaries', `${os}-${cpu}`);
    const library = ['bin', 'napi-v6', os, cpu, 'libonnxruntime.so.1'];
    put(addon, path.join(binaries, 'cutout.node'));
    put(inRoot('node_modules', runtime, ...library), path.join(binaries, 'libonnxruntime.so.1'));
    put(inRoot('scripts', 'package', 'LICENSE.onnxruntime'), path.join(binaries, 'LICENSE.onnxruntime'));
  }

  const closure = closureOf(packed.bundleDependencies, platforms);
  const carried = new Set(closure.map(({ place }) => place.slice(place.lastIndexOf('node_modules/') + 13)));
  for (const each of closure) {
    const to = path.join(target, each.place);
    const isKept = (name) => !isSuperfluous(name) && !isLeftOut(each.place, name, platforms);
    putFolder(await folderOf(each), to, isKept);
    dropOptional(path.join(to, 'package.json'), carried);
  }
}

/** The file that an archive is made to by default. */
export const archiveFile = () => {
  const { name, version } = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'));
  return inBuild('package', `${name}-${version}.tgz`);
};
