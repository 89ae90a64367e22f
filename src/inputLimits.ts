/** Limits of a file that a client sends (docs/contract.md section 3). */
export const maxFileMebibytes = 22;
export const maxFileBytes = maxFileMebibytes * 1024 * 1024;
/** Millions of pixels of an image. */
export const maxMegapixels = 50;
/** Pixels of a side: the most that the format JPEG has a number for, and that the addon takes, in an image or a result. A decoder needs memory and time for each line, however short it is. */
export const maxImageSide = 65_535;
