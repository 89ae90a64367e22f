import { existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import { root } from '../setup/paths.js';
import { runProgram } from '../setup/step.js';

const git = (...args) => runProgram('nodes-clone', 'git', ['-c', 'advice.detachedHead=false', ...args]);

/** A clone of the last commit; an existing clone is updated, so that its object files are reused. */
export async function clone(folder) {
  if (!existsSync(path.join(folder, '.git'))) {
    rmSync(folder, { recursive: true, force: true });
    await git('clone', '--quiet', '--depth', '1', `file://${root}`, folder);
    return;
  }
  await git('-C', folder, 'fetch', '--quiet', '--depth', '1', 'origin', 'HEAD');
  await git('-C', folder, 'reset', '--quiet', '--hard', 'FETCH_HEAD');
  await git('-C', folder, 'clean', '--quiet', '--force', '-d');
}

/**
 * Forces every step of the set-up to run again. Object files of the engine are kept: they do not depend on Node.js,
 * and an addon linked under another Node.js must work.
 */
export function forget(folder) {
  for (const part of ['node_modules', 'build/stamps', 'build/ts', 'build/web', 'build/node'])
    rmSync(path.join(folder, part), { recursive: true, force: true });
}
