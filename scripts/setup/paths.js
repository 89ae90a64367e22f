import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Root of the repository. */
export const root = fileURLToPath(new URL('../../', import.meta.url));
/** Everything made by set-up, which can be deleted at any time. */
export const build = path.join(root, 'build');
export const main = path.join(build, 'ts', 'src', 'main.js');

export const inRoot = (...parts) => path.join(root, ...parts);
export const inBuild = (...parts) => path.join(build, ...parts);

/**
 * What binaries depend on besides their files, those of packages and our own. Not the version of Node.js: all of them use
 * Node-API, which is the same in every version.
 */
export const machine = `${process.platform} ${process.arch}`;
