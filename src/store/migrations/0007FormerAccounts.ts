import type { Migration } from './migration.ts';

/**
 * Links the accounts of people who delete one and return, so that nothing is given twice. A person is
 * identified by a keyed digest of issuer and subject (src/accounts/pseudonym.ts), which reveals nothing
 * without the key in `secret`.
 */
export const formerAccounts: Migration = {
  name: 'former-accounts',
  sql: `
-- Accounts that people deleted. What they were given stands in their entries and in free_use.
CREATE TABLE deleted_account (
  person BLOB NOT NULL CHECK (length(person) = 32),
  account_id TEXT NOT NULL REFERENCES account (id),
  PRIMARY KEY (person, account_id)
) STRICT, WITHOUT ROWID;

-- Of an account whose owner came back: those before it.
CREATE TABLE former_account (
  account_id TEXT NOT NULL REFERENCES account (id),
  former_id TEXT NOT NULL REFERENCES account (id),
  PRIMARY KEY (account_id, former_id)
) STRICT, WITHOUT ROWID;
`,
};
