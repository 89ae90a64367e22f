import type { Migration } from './migration.ts';

/**
 * Several servers on one database, and charges by content, so that none is made twice. Times are Unix
 * milliseconds.
 */
export const nodes: Migration = {
  name: 'nodes',
  sql: `
-- Servers that are at work. By the database's clock.
CREATE TABLE node (
  id TEXT PRIMARY KEY,
  started_at INTEGER NOT NULL,
  -- Moved on while it lives.
  expires_at INTEGER NOT NULL
) STRICT;

-- The server that works on it. Who is not in node any more is not coming back.
ALTER TABLE reservation ADD COLUMN node_id TEXT;
-- A repeat: the reserve entry of the charge it stands for, where no answer to that was out yet. Given back with it.
ALTER TABLE reservation ADD COLUMN carries INTEGER REFERENCES entry (id);

-- What an account paid for lately, by the names of the work: asked for again it costs nothing.
CREATE TABLE repeat (
  account_id TEXT NOT NULL REFERENCES account (id),
  name TEXT NOT NULL,
  -- The reserve entry of the charge.
  reservation_id INTEGER NOT NULL REFERENCES entry (id),
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX repeat_expiry ON repeat (expires_at);

-- Random keys that all servers have in common.
CREATE TABLE secret (
  name TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
`,
};
