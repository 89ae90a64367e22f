import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { addon } from '../setup/native.js';
import { inBuild } from '../setup/paths.js';
import { runProgram } from '../setup/step.js';
import { stage } from './stage.js';

/** Where an addon for another processor is looked for (docs/platforms.md). */
export const crossAddon = ({ os, cpu }) => inBuild('cross', `${os}-${cpu}`, 'Release', 'cutout.node');

/** The addons that are there: this machine's, and those for others. */
export function builtAddons() {
  const own = process.arch;
  const others = ['x64', 'arm64'].filter((cpu) => cpu !== own).map((cpu) => ({ os: 'linux', cpu }));
  return new Map([
    [{ os: 'linux', cpu: own }, addon('cutout')],
    ...others.filter((each) => existsSync(crossAddon(each))).map((each) => [each, crossAddon(each)]),
  ]);
}

/**
 * Makes an archive for `npm install`: sorted names, fixed times and owners.
 * @param {string} file
 * @param {{addons?: ReturnType<typeof builtAddons>, level?: number}} options `level`: gzip's
 */
export async function makeArchive(file, { addons = builtAddons(), level = 6 } = {}) {
  const folder = `${file}.${process.pid}`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(path.join(folder, 'package'), { recursive: true });
  try {
    await stage(path.join(folder, 'package'), addons);
    const same = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mtime=1985-10-26 08:15:00Z'];
    const draft = path.join(folder, 'archive.tgz');
    await runProgram('package-archive', 'tar', [
      ...['-c', '-I', `gzip -n -${level}`, '--mode=u=rwX,go=rX', ...same],
      ...['-f', draft, '-C', folder, 'package'],
    ]);
    renameSync(draft, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
