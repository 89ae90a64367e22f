import { existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import { root } from '../setup/paths.js';
import { runProgram } from '../setup/step.js';

const git = (...args) => runProgram('nodes-clone', 'git', ['-c', 'advice.detachedHead=false', ...args]);

/** The last commit in a folder of its own; a clone of an earlier call is brought to it, so that its object files serve. */
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
 * Lets every step of the set-up be done again. Object files of the engine stay: their compiler knows nothing of Node.js,
 * and an addon that was linked under another Node.js has to serve.
 */
export function forget(folder) {
  for (const part of ['node_modules', 'build/stamps', 'build/ts', 'build/web', 'build/node'])
    rmSync(path.join(folder, part), { recursive: true, force: true });
}
