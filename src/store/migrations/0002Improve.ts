import type { Migration } from './migration.ts';

/** Images handed in through /improve. The bytes lie in a bucket under `object`. */
export const improve: Migration = {
  name: 'improve',
  sql: `
CREATE TABLE improve_image (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES account (id),
  at INTEGER NOT NULL,
  object TEXT NOT NULL UNIQUE,
  -- 0 while the bytes are on their way into the bucket.
  stored INTEGER NOT NULL CHECK (stored IN (0, 1)),
  type TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  width INTEGER NOT NULL,
  height INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  filename TEXT,
  tag TEXT
) STRICT;
CREATE INDEX improve_image_account ON improve_image (account_id, at);
CREATE INDEX improve_image_at ON improve_image (at, id);
`,
};
