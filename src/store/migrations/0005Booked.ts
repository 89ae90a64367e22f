import type { Migration } from './migration.ts';

/** What operators give, sell and take back is counted at every scrape of the metrics: without reading the charges. */
export const booked: Migration = {
  name: 'booked',
  sql: `
CREATE INDEX entry_booked ON entry (kind, amount) WHERE kind IN ('grant', 'purchase', 'adjust', 'refund');
`,
};
