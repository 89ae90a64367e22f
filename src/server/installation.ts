import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

// This file runs as build/ts/src/server/installation.js.

export const pagesFolder = fileURLToPath(new URL('../../../web', import.meta.url));

const root = new URL('../../../../', import.meta.url);
const packageFile = new URL('package.json', root);
/** Written by `npm run package` and by the build of an image. */
const commitFile = new URL('build/commit', root);

export const version = (): string =>
  (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }).version;

/** The commit of this program, shortened, with `-dirty` for changed sources; undefined if unknown. */
export function commit(): string | undefined {
  if (existsSync(commitFile)) return readFileSync(commitFile, 'utf8').trim() || undefined;
  // Not the commit of a repository that Cutout is installed in.
  if (!existsSync(new URL('.git', root))) return undefined;
  try {
    const args = ['describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'];
    const cwd = fileURLToPath(root);
    return execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

/** `0.2.0 (04544a0c1b2d)`: version and commit. */
export function release(): string {
  const known = commit();
  return known === undefined ? version() : `${version()} (${known})`;
}
