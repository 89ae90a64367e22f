import { fileURLToPath } from 'node:url';

/** Where set-up puts SQLite; this file runs as build/ts/src/cli/sqlite.js. */
export const sqliteAddon = fileURLToPath(new URL('../../../sqlite/better_sqlite3.node', import.meta.url));
