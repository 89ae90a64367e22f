import type { Migration } from './migration.ts';

/**
 * Accounts, keys and the ledger. Times are Unix milliseconds, amounts quarter credits.
 *
 * `entry` is the truth: never changed, never deleted. `account.balance` and `free_use` are sums over it, kept
 * in the same transaction. `reservation` holds only what is still open; its id is the id of its reserve entry.
 */
export const books: Migration = {
  name: 'books',
  sql: `
CREATE TABLE account (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  balance INTEGER NOT NULL DEFAULT 0 CHECK (balance >= 0)
) STRICT;

CREATE TABLE api_key (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES account (id),
  -- The first 48 bits of the hash: finds the candidates, the whole hash is then compared in constant time.
  bucket INTEGER NOT NULL,
  hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
  prefix TEXT NOT NULL,
  label TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  revoked_at INTEGER
) STRICT;
CREATE INDEX api_key_bucket ON api_key (bucket);
CREATE INDEX api_key_account ON api_key (account_id);

CREATE TABLE entry (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id TEXT NOT NULL REFERENCES account (id),
  at INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('grant', 'purchase', 'reserve', 'settle', 'release', 'refund', 'adjust')),
  amount INTEGER NOT NULL,
  balance INTEGER NOT NULL CHECK (balance >= 0),
  -- reserve only: what the call is paid with.
  payment TEXT CHECK (payment IN ('free', 'preview', 'full')),
  request_id TEXT,
  -- settle, release and refund: the reserve entry they belong to.
  reservation_id INTEGER REFERENCES entry (id),
  -- grant, purchase and adjust: the outside event, counted once.
  reference TEXT,
  note TEXT,
  CHECK ((kind = 'reserve') = (payment IS NOT NULL)),
  CHECK (kind NOT IN ('settle', 'release') OR reservation_id IS NOT NULL)
) STRICT;
CREATE INDEX entry_account ON entry (account_id, id);
CREATE UNIQUE INDEX entry_reference ON entry (account_id, kind, reference) WHERE reference IS NOT NULL;
-- A reservation ends once, and what it charged is given back at most once.
CREATE UNIQUE INDEX entry_end ON entry (reservation_id) WHERE kind IN ('settle', 'release');
CREATE UNIQUE INDEX entry_refund ON entry (reservation_id) WHERE kind = 'refund' AND reservation_id IS NOT NULL;
CREATE TRIGGER entry_is_not_changed BEFORE UPDATE ON entry
  BEGIN SELECT raise(ABORT, 'ledger entries are append-only'); END;
CREATE TRIGGER entry_is_not_deleted BEFORE DELETE ON entry
  BEGIN SELECT raise(ABORT, 'ledger entries are append-only'); END;

CREATE TABLE reservation (
  id INTEGER PRIMARY KEY REFERENCES entry (id),
  account_id TEXT NOT NULL REFERENCES account (id),
  payment TEXT NOT NULL CHECK (payment IN ('free', 'preview', 'full')),
  amount INTEGER NOT NULL CHECK (amount >= 0),
  -- held: the work is under way. charged: settled, the answer is still being sent.
  state TEXT NOT NULL CHECK (state IN ('held', 'charged')),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX reservation_expiry ON reservation (expires_at);

-- Free previews used in a UTC month ('2026-11') and on a UTC day ('2026-11-21').
CREATE TABLE free_use (
  account_id TEXT NOT NULL REFERENCES account (id),
  period TEXT NOT NULL,
  used INTEGER NOT NULL CHECK (used >= 0),
  PRIMARY KEY (account_id, period)
) STRICT, WITHOUT ROWID;
`,
};
