import type { Migration } from './migration.ts';

/** Use is summed over all accounts of a person, whichever of them is asked for. */
export const laterAccounts: Migration = {
  name: 'later-accounts',
  sql: `
CREATE INDEX former_account_former ON former_account (former_id);
`,
};
