import { fileURLToPath } from 'node:url';

/** Where set-up puts the built pages; this file runs as build/ts/src/server/pages.js. */
export const pagesFolder = fileURLToPath(new URL('../../../web', import.meta.url));
