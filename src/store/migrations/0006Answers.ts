import type { Migration } from './migration.ts';

/**
 * One row for each pending answer replaces `reservation`: what is reserved for it, and the charge it may
 * carry. Of the old rows, `held` had reserved credits, `charged` had a pending answer, and `carries` was
 * another answer's charge. From now on a charge is identified by its content alone, never by an
 * Idempotency-Key.
 */
export const answers: Migration = {
  name: 'answers',
  sql: `
CREATE TABLE answer (
  -- Random; its server chooses it before it reserves anything.
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES account (id),
  -- The server that works on it. Who is not in node any more is not coming back.
  node_id TEXT,
  -- The reserve entry, until it is settled or released.
  reservation_id INTEGER UNIQUE REFERENCES entry (id),
  -- The reserve entry of the charge that this answer may carry, while no answer with it is out.
  charge_id INTEGER REFERENCES entry (id),
  expires_at INTEGER NOT NULL,
  CHECK (reservation_id IS NOT NULL OR charge_id IS NOT NULL)
) STRICT;
CREATE INDEX answer_charge ON answer (charge_id) WHERE charge_id IS NOT NULL;
CREATE INDEX answer_expiry ON answer (expires_at);

-- A repeat of a charge that was final already had nothing left to end.
INSERT INTO answer (id, account_id, node_id, reservation_id, charge_id, expires_at)
  SELECT 'reservation ' || held.id, held.account_id, held.node_id,
    CASE held.state WHEN 'held' THEN held.id END,
    CASE held.state WHEN 'held' THEN held.carries ELSE coalesce(held.carries, held.id) END,
    held.expires_at
  FROM reservation AS held JOIN entry ON entry.id = held.id
  WHERE held.state = 'held' OR held.carries IS NOT NULL OR entry.reservation_id IS NULL;
DROP TABLE reservation;

DELETE FROM repeat WHERE name LIKE 'key:%';
`,
};
