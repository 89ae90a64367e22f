import { rmSync } from 'node:fs';
import path from 'node:path';
import { root } from '../setup/paths.js';
import { runProgram } from '../setup/step.js';

/** The last commit in a folder of its own. */
export const clone = (folder) =>
  runProgram('nodes-clone', 'git', ['clone', '--quiet', '--depth', '1', `file://${root}`, folder]);

/**
 * Lets every step of the set-up be done again. Object files of the engine stay: their compiler knows nothing of Node.js,
 * and an addon that was linked under another Node.js has to serve.
 */
export function forget(folder) {
  for (const part of ['node_modules', 'build/stamps', 'build/ts', 'build/web', 'build/node'])
    rmSync(path.join(folder, part), { recursive: true, force: true });
}
