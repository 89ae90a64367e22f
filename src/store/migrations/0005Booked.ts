import type { Migration } from './migration.ts';

/**
 * An index for the metrics of grants, purchases, adjustments and refunds, which are read at every scrape
 * without the charges.
 */
export const booked: Migration = {
  name: 'booked',
  sql: `
CREATE INDEX entry_booked ON entry (kind, amount) WHERE kind IN ('grant', 'purchase', 'adjust', 'refund');
`,
};
