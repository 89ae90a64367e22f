/** What a file that is sent may be (docs/contract.md section 3), for all that enforce or name it. */
export const MAX_FILE_MEBIBYTES = 22;
export const MAX_FILE_BYTES = MAX_FILE_MEBIBYTES * 1024 * 1024;
/** Of an image, in millions of pixels. */
export const MAX_MEGAPIXELS = 50;
