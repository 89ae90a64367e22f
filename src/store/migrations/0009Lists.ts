import type { Migration } from './migration.ts';

/** Accounts and submitted images are listed a page at a time, in the order of these indexes. */
export const lists: Migration = {
  name: 'lists',
  sql: `
CREATE INDEX account_created ON account (created_at, id);
DROP INDEX improve_image_account;
CREATE INDEX improve_image_account ON improve_image (account_id, at, id);
`,
};
