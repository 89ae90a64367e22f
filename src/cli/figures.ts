/** Bytes in megabytes (10⁶), below 10 MB with a tenth. */
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;

/** The upper of the two middle values; undefined where there are none. */
export const median = (values: readonly number[]): number | undefined =>
  [...values].sort((a, b) => a - b)[values.length >> 1];
