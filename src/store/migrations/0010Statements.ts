import type { Migration } from './migration.ts';

/** A statement by time, or by kind and time, is read in the order of these indexes. */
export const statements: Migration = {
  name: 'statements',
  sql: `
CREATE INDEX entry_at ON entry (account_id, at, id);
CREATE INDEX entry_kind ON entry (account_id, kind, at, id);
`,
};
