import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fetchPackage } from '../setup/npmPackage.js';
import { inBuild, inRoot } from '../setup/paths.js';

/**
 * @typedef {{os: string, cpu: string}} Platform
 * @typedef {{place: string, version: string, integrity: string}} Locked `place`: its folder, `node_modules/…`
 */

/** The folder in which Node.js finds `name` for the package at `from`, as the lockfile places it. */
function resolve(locked, from, name) {
  for (let folder = from; ; ) {
    const place = path.posix.join(folder, 'node_modules', name);
    if (locked[place]) return place;
    if (folder === '') return undefined;
    folder = folder.includes('/node_modules/') ? folder.slice(0, folder.lastIndexOf('/node_modules/')) : '';
  }
}

const fits = ({ os, cpu, libc }, platforms) =>
  platforms.some(
    (platform) =>
      (os ?? [platform.os]).includes(platform.os) && (cpu ?? [platform.cpu]).includes(platform.cpu),
  ) && (libc ?? ['glibc']).includes('glibc');

/**
 * The packages of the lockfile that `names` need, all levels, on any of the platforms.
 * @param {readonly string[]} names
 * @param {readonly Platform[]} platforms
 * @returns {Locked[]}
 */
export function closureOf(names, platforms) {
  const locked = JSON.parse(readFileSync(inRoot('package-lock.json'), 'utf8')).packages;
  const found = new Set();
  const visit = (place) => {
    const entry = locked[place];
    if (found.has(place) || !fits(entry, platforms)) return;
    found.add(place);
    const { dependencies, optionalDependencies, peerDependencies } = entry;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      const needed = resolve(locked, place, name);
      if (needed) visit(needed);
    }
  };
  for (const name of names) visit(`node_modules/${name}`);
  return [...found].sort().map((place) => ({ place, ...locked[place] }));
}

/** The folder of a locked package: this checkout's, or for another platform one that npm fetches, checked by its digest. */
export async function folderOf({ place, version, integrity }) {
  const own = inRoot(place);
  if (existsSync(own)) return own;
  const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const target = inBuild('package', 'fetched', `${name.replace('/', '+')}@${version}`);
  if (existsSync(target)) return target;
  await fetchPackage({ name, version, integrity }, target, { log: 'package-fetch' });
  return target;
}
