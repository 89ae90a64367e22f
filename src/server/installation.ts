import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

// This file runs as build/ts/src/server/installation.js.

/** Folder of the built pages. */
export const pagesFolder = fileURLToPath(new URL('../../../web', import.meta.url));

const packageFile = new URL('../../../../package.json', import.meta.url);

/** Version of this program, from its package.json. */
export const version = (): string =>
  (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }).version;
