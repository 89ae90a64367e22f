/** Limits of a file that a client sends (docs/contract.md section 3). */
export const MAX_FILE_MEBIBYTES = 22;
export const MAX_FILE_BYTES = MAX_FILE_MEBIBYTES * 1024 * 1024;
/** Millions of pixels of an image. */
export const MAX_MEGAPIXELS = 50;
/** Pixels of a side: the most that the format JPEG has a number for, and that the addon takes, in an image or a result. A decoder needs memory and time for each line, however short it is. */
export const MAX_SIDE = 65_535;
