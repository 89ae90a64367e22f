/** How many previews of an account are free. Their use is counted in freePreviewUse.ts. */
export interface FreePreviews {
  /** Free previews per UTC calendar month; 0: none. */
  readonly perMonth: number;
  /** The maximum number of them on one UTC day; 0: no daily limit. */
  readonly perDay: number;
}

/** The numbers of the contract (section 8): the defaults of CUTOUT_FREE_PREVIEWS_MONTH and CUTOUT_FREE_PREVIEWS_DAY. */
export const standardFreePreviews: FreePreviews = { perMonth: 50, perDay: 10 };
