import { mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { addon, kernelsForGpu } from '../setup/native.js';
import { runProgram } from '../setup/step.js';
import { stage } from './stage.js';

/** This machine's addon, as set-up has built it, by its platform. */
export const ownAddon = () => new Map([[{ os: 'linux', cpu: process.arch }, addon('cutout')]]);

/**
 * Makes an archive for `npm install`: sorted names, fixed times and owners.
 * @param {string} file
 * @param {{addons?: ReturnType<typeof ownAddon>, kernels?: string | undefined, level?: number}} options `kernels`: for a
 * GPU, beside this machine's addon; `level`: gzip's
 */
export async function makeArchive(file, { addons = ownAddon(), kernels = kernelsForGpu(), level = 6 } = {}) {
  const folder = `${file}.${process.pid}`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(path.join(folder, 'package'), { recursive: true });
  try {
    await stage(path.join(folder, 'package'), addons, kernels);
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
