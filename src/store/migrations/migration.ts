/** One step of the schema. A step that was released is never edited, only followed by another. */
export interface Migration {
  readonly name: string;
  /** In SQLite's dialect; ../schema.ts translates it for PostgreSQL. */
  readonly sql: string;
}
