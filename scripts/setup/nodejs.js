import { spawn } from 'node:child_process';
import path from 'node:path';
import { fetchPackage } from './npmPackage.js';
import { inBuild } from './paths.js';
import { startWithSignals } from './process.js';
import { ownRelease } from './releases.js';
import { reportFailure } from './report.js';
import { satisfies } from './requirements.js';
import { runStep } from './step.js';
import { checkSystem } from './system.js';

const folder = inBuild('node');
const fetched = path.join(folder, 'bin', 'node');

/**
 * Fetches a release through npm and puts its `bin/node` into the folder `target`.
 * @param {{version: string, integrity: Record<string, string>}} release
 * @param {string} target
 * @param {(progress: string) => void} progress
 * @param {string} arch the processor's, this machine's by default
 */
export const fetchNode = ({ version, integrity }, target, progress, arch = process.arch) =>
  fetchPackage({ name: `node-linux-${arch}`, version, integrity: integrity[arch] }, target, {
    log: 'node',
    files: ['bin/node', 'LICENSE'],
    progress,
  });

/** Environment in which npm and every other child process use the Node.js at `file`. */
export const environmentOf = (file) => ({
  ...process.env,
  PATH: `${path.dirname(file)}${path.delimiter}${process.env.PATH ?? ''}`,
  NODE: file,
  npm_node_execpath: file,
});

/** Runs this program again on another Node.js, to its end; signals are passed on. */
function goOnWith(file) {
  const child = startWithSignals(() =>
    spawn(file, [...process.execArgv, ...process.argv.slice(1)], {
      stdio: 'inherit',
      env: environmentOf(file),
    }),
  );
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve(signal ? 1 : (code ?? 1)));
  });
}

/**
 * Resolves if this Node.js is one that Cutout supports ("engines" in package.json). Otherwise it never resolves: the pinned
 * release is fetched into `build/node`, once, and the program starts again on that; this process only waits for its end.
 * To be awaited before anything that needs a package or a newer Node.js. Runs on Node.js 18 and newer itself.
 */
export async function onSupportedNode() {
  if (satisfies(process.versions.node)) return;
  try {
    checkSystem();
    await runStep({
      name: 'node',
      title: `fetch Node.js ${ownRelease.version} (this is ${process.versions.node})`,
      inputs: async () => `${ownRelease.version} ${process.arch}`,
      products: [fetched],
      work: (progress) => fetchNode(ownRelease, folder, progress),
    });
    process.exit(await goOnWith(fetched));
  } catch (error) {
    reportFailure(error);
    process.exit();
  }
}
