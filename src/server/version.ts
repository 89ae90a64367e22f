import { readFileSync } from 'node:fs';

/** This file runs as build/ts/src/server/version.js. */
const packageFile = new URL('../../../../package.json', import.meta.url);

export const version = (): string =>
  (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }).version;
