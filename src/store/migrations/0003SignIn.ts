import type { Migration } from './migration.ts';

/**
 * Identities of account owners, one-time links to the console, and the audit log. Times are Unix
 * milliseconds.
 */
export const signIn: Migration = {
  name: 'sign-in',
  sql: `
-- Shown only, never used to find an account.
ALTER TABLE account ADD COLUMN email TEXT;
-- When its owner deleted it: the ledger stays, everything personal is gone.
ALTER TABLE account ADD COLUMN deleted_at INTEGER;

CREATE TABLE identity (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES account (id),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX identity_account ON identity (account_id);

CREATE TABLE console_link (
  hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
  account_id TEXT NOT NULL REFERENCES account (id),
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  -- Account that did it; null: who sits at the machine.
  actor TEXT,
  action TEXT NOT NULL,
  -- Account or key it was done to.
  subject TEXT,
  detail TEXT,
  -- Network address it came from.
  address TEXT
) STRICT;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
  BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
  BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
`,
};
