import type { Migration } from './migration.ts';

/** What people used is summed over all their accounts, whichever of them is asked for. */
export const laterAccounts: Migration = {
  name: 'later-accounts',
  sql: `
CREATE INDEX former_account_former ON former_account (former_id);
`,
};
